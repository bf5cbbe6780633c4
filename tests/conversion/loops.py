"""Loops that are converted to code, in ONNX's own notation."""

#: a list that grows in a loop, and its values one behind the other
ROWS = """(float[4,3] x) => (float[4,3] y)
  <int64 first = {0}, int64 turns = {4}, bool go = {1}, float[3] begin = {0, 1, 2}> {
  none = SequenceEmpty <dtype = 1> ()
  last, rows = Loop <
    body = turn (int64 i, bool c, float[3] h, seq(float[3]) s) => (bool d, float[3] k, seq(float[3]) t) {
    e = Gather <axis = 0> (x, i)
    k = Add(h, e)
    t = SequenceInsert(s, k)
    d = Identity(c)
  }> (turns, go, begin, none)
  y = ConcatFromSequence <axis = 0, new_axis = 1> (rows)
}"""
