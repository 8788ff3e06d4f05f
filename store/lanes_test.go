package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"convls/protocol"
)

// lanesOf returns lane and run of each node that has one, by name.
func lanesOf(t *testing.T, sess *Session, nodes map[string]Skeleton) string {
	t.Helper()
	return read(t, sess, func(r *Reader) (string, error) {
		var out []string
		for _, name := range strings.Fields("a b c d e f g h") {
			n, ok := nodes[name]
			if !ok {
				continue
			}
			s, err := r.Skeleton(n.Seq)
			if protocol.CodeOf(err) == protocol.CodeUnknownNode {
				continue
			}
			if err != nil {
				return "", err
			}
			first := "root"
			for other, o := range nodes {
				if o.Seq == s.Run {
					first = other
				}
			}
			out = append(out, fmt.Sprintf("%s:%d/%s", name, s.Lane, first))
		}
		return strings.Join(out, " "), nil
	})
}

// A chain node's lane is decided when it is written: it goes on in its predecessor's
// if that is free since, takes the nearest one that is, or opens one.
func TestLanes(t *testing.T) {
	for _, c := range []struct {
		name string
		// nodes are "name after" in the order they are written, "!name" deletes the branch
		// with that tip, and "name after*" is a node that another one called.
		nodes, want string
	}{
		{"a chain", "a root, b a, c b", "a:0/root b:0/root c:0/root"},
		{"a later sibling opens a lane and keeps it", "a root, b a, c a, d c, e b", "a:0/root b:0/root c:1/c d:1/c e:0/root"},
		{"a lane that was left is used again", "a root, b a, c a, d c, e c", "a:0/root b:0/root c:1/c d:1/c e:0/e"},
		{"not while another line is in it", "a root, b a, c a, d b, e a", "a:0/root b:0/root c:1/c d:0/root e:2/e"},
		{"the first child of a branch whose lane was given away", "a root, b a, c a, d c, e c, f b", "a:0/root b:0/root c:1/c d:1/c e:0/e f:2/f"},
		{"what is called never takes the lane of the conversation", "a root, b a*, c a", "a:0/root b:1/b c:0/root"},
		{"what is called goes on in its own lane", "a root, b a*, c b, d a", "a:0/root b:1/b c:1/b d:0/root"},
		{"a deleted branch gives its lane back", "a root, b a, c a, d c, !d, e a", "a:0/root b:0/root e:1/e"},
		{"the deleted end of a run leaves the run as it was", "a root, b a, c b, d a, !c, e a", "a:0/root d:1/d e:0/root"},
		{"of two runs in a lane only the one that went gives back", "a root, b a, c a, d c, e c, !e, f c, g b", "a:0/root b:0/root c:1/c d:1/c f:0/f g:2/g"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openTest(t, vfs.NewMem())
			sess := newSession(t, s)
			nodes := map[string]Skeleton{"root": {Seq: Root}}
			for _, step := range strings.Split(c.nodes, ", ") {
				if tip, ok := strings.CutPrefix(step, "!"); ok {
					remove(t, sess, nodes[tip])
					continue
				}
				name, after, _ := strings.Cut(step, " ")
				after, called := strings.CutSuffix(after, "*")
				spec := NodeSpec{ID: name, Kind: protocol.KindUser, Predecessor: nodes[after].Seq, Content: textContent(name)}
				if called {
					spec.Caller = spec.Predecessor
				}
				nodes[name] = node(t, sess, spec)
			}
			want(t, "lanes", lanesOf(t, sess, nodes), c.want)
			clean(t, s)
		})
	}
}

// A fork in the midst of thousands looks at so many lanes and no more, and opens a new
// one if none of them is free.
func TestLanesInReach(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	do(t, sess, func(tx *Tx) error {
		for range 3 * laneReach {
			if _, err := tx.Append(NodeSpec{Kind: protocol.KindUser, Predecessor: Root, Status: protocol.StatusSealed, HeadNeutral: true}); err != nil {
				return err
			}
		}
		return nil
	})
	lanes := read(t, sess, func(r *Reader) (uint64, error) { return r.Lanes() })
	want(t, "lanes", lanes, 3*laneReach)
	clean(t, s)
}

// The record of a lane that can not be read costs its lane, and Check tells of it; of
// lanes that two lines are in, too.
func TestDamagedLanes(t *testing.T) {
	s := openTest(t, vfs.NewMem())
	sess := newSession(t, s)
	a := user(t, sess, Root, "a")
	b := user(t, sess, a.Seq, "b")
	if err := s.db.Set(key(famLane, sess.num, 0), []byte("?"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	c := user(t, sess, b.Seq, "c")
	want(t, "the lane after a damaged one", c.Lane, 1)
	want(t, "its run", c.Run, c.Seq)
	if p := problems(t, s); len(p) != 1 || !strings.Contains(p[0], "lane 0 says that node 0 is its last") {
		t.Errorf("%q, want that lane 0 is damaged", p)
	}
	for _, wrong := range []struct {
		change func(*Skeleton)
		says   string
	}{
		{func(sk *Skeleton) { sk.Lane = 7 }, "lane 7 is none of the"},
		{func(sk *Skeleton) { sk.Run = c.Seq }, "its predecessor in run"},
		{func(sk *Skeleton) { sk.Lane, sk.Run = 0, sk.Seq }, "later than its predecessor"},
	} {
		d := user(t, sess, a.Seq, "d")
		wrong.change(&d)
		if err := s.db.Set(key(famSkeleton, sess.num, uint64(d.Seq)), d.encode(), pebble.Sync); err != nil {
			t.Fatal(err)
		}
		told := problems(t, s)
		if !slices.ContainsFunc(told, func(p string) bool {
			return strings.Contains(p, wrong.says) && strings.Contains(p, fmt.Sprint("node ", d.Seq))
		}) {
			t.Errorf("%q, want %q of node %d", told, wrong.says, d.Seq)
		}
	}
}
