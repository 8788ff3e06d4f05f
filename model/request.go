package model

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"convls/protocol"
)

// get fetches a JSON document into v.
func (t target) get(ctx context.Context, key, url string, v any) error {
	x := t.begin(ctx, key, shapeDocument)
	defer x.end()
	req, err := http.NewRequestWithContext(x.ctx, http.MethodGet, url, nil)
	if err != nil {
		return x.error("", err)
	}
	req.Header.Set("Accept", "application/json")
	if t.kind == KindGemini {
		req.Header.Set("X-Goog-Api-Key", key)
	} else {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := t.http.Do(req)
	if err != nil {
		return x.error("", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxDocument))
	if err != nil || res.StatusCode/100 != 2 {
		return x.error("", err)
	}
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
		x.whole(bytes.TrimSpace(body))
		return x.error("", nil)
	}
	if err := protocol.Unmarshal(body, v); err != nil {
		return x.error("", err)
	}
	return nil
}

// invalid is a request that can not be made at all.
func (t target) invalid(model string, err error) *Error {
	return &Error{Class: ClassInvalid, Provider: t.provider, Model: model, Message: err.Error()}
}
