package chat

import "testing"

// TestScreenAttached: what was attached is shown, with the branch that it comes from,
// and where that was deleted.
func TestScreenAttached(t *testing.T) {
	r := newRig(t)
	d := newDriver(t, Options{}, r.dial(nil))
	d.enter("repeat: one")
	d.see("#2 offline")
	d.answered()
	d.enter("/fork side")
	d.see("goes to the branch side")
	d.enter("repeat: what it came to")
	d.see("#4 offline")
	d.answered()
	d.enter("/checkout #2")
	d.see("checked out #2")
	d.gone("what it came to")
	d.enter("/attach side")
	d.see("#3 attached: branch side", "what it came to")
	d.enter("/delete side")
	d.see("Delete side for good: 2 nodes")
	d.keys("y")
	d.see("deleted 2 nodes", "#3 attached: a message", "it was deleted: the model reads that it is gone")
	d.gone("what it came to")
}
