package settings

import (
	"fmt"

	"convls/protocol"
)

// Check reads a session's own settings, as convls/session/create and configure
// take them. The error, code invalid_params, names every setting with a value that
// it can not have; the warnings are about names that are no settings.
func Check(session protocol.Raw) (warnings []string, err error) {
	r, err := readSession(session)
	if err != nil {
		return nil, err
	}
	return r.warnings.list(), nil
}

// Merge lays a session's own settings over a client's. A session without any costs
// nothing, and gets the client's as they are, shared. Errors are those of [Check].
func Merge(client protocol.Settings, session protocol.Raw) (protocol.Settings, error) {
	if empty(session) {
		return client, nil
	}
	own, err := readSession(session)
	if err != nil {
		return client, err
	}
	// The client's settings have the form of a layer when they are encoded.
	raw, err := protocol.Marshal(client)
	if err != nil {
		return client, fmt.Errorf("merge settings: %w", err)
	}
	entries, err := entriesOf(raw)
	if err != nil {
		return client, fmt.Errorf("merge settings: %w", err)
	}
	merged, err := merge(read(entries, true, "").layer, own.layer)
	if err != nil {
		return client, err
	}
	return merged, nil
}

func readSession(session protocol.Raw) (*reading, error) {
	entries, err := entriesOf(session)
	if err != nil {
		return nil, invalid(fmt.Errorf("the session's settings: %w", err))
	}
	r := read(entries, true, "the session's settings: ")
	return r, invalid(r.faults.err())
}
