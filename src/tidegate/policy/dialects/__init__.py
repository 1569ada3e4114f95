"""Dialects: the policies of other products, read as ours (POL-15). One file a product.

Each file's head says what its product means by its entries, and where that is written. Rules of the room:

* Nothing is widened. What cannot be said exactly becomes the narrower, or is left out, and its entry says so and why.
  A deny that cannot be said becomes a wider deny, and where there is none the file is refused.
* A text that its own product refuses is an error here too, at its place; so is a key beside the lists of hosts that
  nobody here knows, since it may narrow them. Keys elsewhere are left out by name.
* What a file becomes is a policy in our own text (emit.py), read by our own loader: a task under the file runs under
  exactly what `tidegate policy import` prints (reader.py).

No I/O: the caller brings the bytes, and the public suffix list as a question that can be asked.
"""
