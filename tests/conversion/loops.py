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

#: a loop that turns no times, as a run tells, and what it has collected beside other rows
NO_TURNS = """(float[4,3] x) => (float[n,3] y)
  <bool go = {1}, float zero = {0}, float[3] begin = {0, 1, 2}> {
  most = ReduceMax <keepdims = 0> (x)
  none = Mul(most, zero)
  turns = Cast <to = 7> (none)
  last, rows = Loop <
    body = turn (int64 i, bool c, float[3] h) => (bool d, float[3] k, float[3] row) {
    k = Add(h, h)
    row = Identity(h)
    d = Identity(c)
  }> (turns, go, begin)
  y = Concat <axis = 0> (rows, x)
}"""

#: a layer in a branch that is not taken, places in the other that are added to, and truth values that branches yield
BRANCHES = """(float[4,3] x) => (float[4,3] y)
  <float much = {1000}, int64[1] place = {2}, float[3] row = {1, 2, 3},
   float[3,3] w = {1, 0, 0, 0, 1, 0, 0, 2, 1}, bool yes = {1}, bool no = {0}> {
  most = ReduceMax <keepdims = 0> (x)
  large = Greater(most, much)
  z, again = If <
    then_branch = then () => (float[4,3] a, bool s) {
      m = MatMul(x, w)
      a = Tanh(m)
      s = Identity(no)
    },
    else_branch = other () => (float[4,3] b, bool t) {
      b = ScatterND <reduction = "add"> (x, place, row)
      t = Identity(yes)
    }> (large)
  y = If <
    then_branch = then2 () => (float[4,3] e) {
      e = Exp(z)
    },
    else_branch = other2 () => (float[4,3] f) {
      f = Neg(z)
    }> (again)
}"""
