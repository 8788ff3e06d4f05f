package protocol

// DocumentScheme is the scheme of the URIs of virtual documents.
const DocumentScheme = "convls"

// TextDocumentContentParams are the parameters of workspace/textDocumentContent (LSP
// 3.18, section Text Document Content Request).
type TextDocumentContentParams struct {
	// URI names a view of a session or a node, as Markdown:
	//
	//	convls:/session/SESSION/transcript.md
	//	convls:/session/SESSION/context.md
	//	convls:/session/SESSION/graph.md
	//	convls:/node/SESSION/NODE.md
	//
	// The views of a session are seen from HEAD, or from ?head=NODE; the graph shows
	// what is named by ?expand=NODE, any number of times. Any other member of the query
	// is refused, as is head given twice.
	URI string `json:"uri"`
}

// TextDocumentContentResult is the reply to workspace/textDocumentContent.
type TextDocumentContentResult struct {
	Text string `json:"text"`
}
