package model

import (
	"bytes"
	"image"
	_ "image/gif"  // the formats that providers take, to read their size
	_ "image/jpeg" // likewise
	_ "image/png"  // likewise
	"math"
	"net/http"

	_ "golang.org/x/image/webp" // likewise

	"convls/protocol"
)

// imageType returns an image's media type: the one that was given, else what its
// first bytes say.
func imageType(p protocol.Part) string {
	if p.MIMEType != "" {
		return p.MIMEType
	}
	return http.DetectContentType(p.Data)
}

// unknownImage is the size in pixels that is assumed of an image that can not be
// read.
const unknownImage = 1024

// imageTokens estimates what an image takes, by the figures that the providers
// document:
//
//   - OpenAI, high detail: scaled into 2048x2048, then the short side to 768; 85
//     and 170 a tile of 512 pixels.
//   - Anthropic: width times height over 750, scaled to 1568 pixels on the long
//     side at most, so about 1,600 at most.
//   - Gemini: 258 if both sides are at most 384 pixels, else 258 a tile of 768.
//   - Ollama: 768, which its server reckons with itself.
func imageTokens(kind string, data []byte) int {
	w, h := float64(unknownImage), float64(unknownImage)
	if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil && c.Width > 0 && c.Height > 0 {
		w, h = float64(c.Width), float64(c.Height)
	}
	switch kind {
	case KindAnthropic:
		if scale := 1568 / max(w, h); scale < 1 {
			w, h = w*scale, h*scale
		}
		return min(int(math.Ceil(w*h/750)), 1600)
	case KindGemini:
		if w <= 384 && h <= 384 {
			return 258
		}
		return 258 * tiles(w, h, 768)
	case KindOllama:
		return 768
	}
	if scale := 2048 / max(w, h); scale < 1 {
		w, h = w*scale, h*scale
	}
	if scale := 768 / min(w, h); scale < 1 {
		w, h = w*scale, h*scale
	}
	return 85 + 170*tiles(w, h, 512)
}

func tiles(w, h, side float64) int {
	return int(math.Ceil(w/side)) * int(math.Ceil(h/side))
}
