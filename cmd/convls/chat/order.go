package chat

import "slices"

// order keeps snapshots and events apart in time. Both carry the cursor of the
// newest event that they know of, but they come by different ways: a snapshot can
// be ahead of events that are still on their way, or behind events that are here
// already.
type order struct {
	// seen are the cursors of the newest events that came, newest last.
	seen []string
	// until is the cursor of a snapshot that is ahead: the events up to that one are
	// in it.
	until   string
	skipped int
	// refused is the cursor of the snapshot that was refused last.
	refused string
}

// maxSeen is how many cursors are remembered, and how many events a snapshot may be
// ahead: far more than happen between a request and its reply.
const maxSeen = 256

// snapshot takes a snapshot in and reports whether it is fit to be shown: not if
// later events were shown already. fresh says that only events after it will come.
func (o *order) snapshot(cursor string, fresh bool) bool {
	if fresh {
		*o = order{seen: []string{cursor}}
		return true
	}
	o.until, o.skipped = "", 0
	switch i := slices.Index(o.seen, cursor); {
	case i >= 0 && i < len(o.seen)-1 && o.refused != cursor:
		o.refused = cursor
		return false
	case i >= 0:
		// Asked twice, the server says twice that there is nothing later: it knows.
		*o = order{seen: []string{cursor}}
		return true
	default:
		o.until = cursor
		return true
	}
}

// event takes an event in and reports whether it is later than the snapshot.
func (o *order) event(cursor string) bool {
	if o.seen = append(o.seen, cursor); len(o.seen) > 2*maxSeen {
		o.seen = slices.Delete(o.seen, 0, maxSeen)
	}
	if o.until == "" {
		return true
	}
	if o.skipped++; o.skipped > maxSeen {
		o.until = "" // the snapshot's event is not among them: do not wait for it for ever
		return true
	}
	if cursor == o.until {
		o.until = ""
	}
	return false
}

// lost says that events were left out: nothing can be told from cursors before.
func (o *order) lost() { *o = order{} }
