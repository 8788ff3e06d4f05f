package drawing

import (
	"fmt"
	"strings"
)

// palette are the colours of an SVG on one ground. All of them reach a contrast of
// 4.5 : 1 with it (WCAG 2.2, 1.4.3), but for ring, which is the HEAD's band.
type palette struct {
	ground, text, muted, band, accent, failed, open, pill string
	lanes                                                 [8]string
}

func lightPalette() palette {
	return palette{
		ground: "#ffffff", text: "#212529", muted: "#646b73", band: "#e7f5f8", accent: "#0b7285", failed: "#c92a2a", open: "#8f5200", pill: "#eef0f3",
		lanes: [8]string{"#0b7285", "#6741d9", "#2b7a3b", "#b4460b", "#1864ab", "#a61e4d", "#4a6d0c", "#862e9c"},
	}
}

func darkPalette() palette {
	return palette{
		ground: "#16181d", text: "#dee2e6", muted: "#9299a3", band: "#16303a", accent: "#4dd0e1", failed: "#ff8078", open: "#f2b84b", pill: "#2a2e35",
		lanes: [8]string{"#4dd0e1", "#b197fc", "#69db7c", "#ffa94d", "#74c0fc", "#f783ac", "#c0eb75", "#e599f7"},
	}
}

// rules are the rules of a style sheet that depend on the palette.
func (p palette) rules() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".bg{fill:%s}.t{fill:%s}.m{fill:%s}.band{fill:%s}.acc{fill:%s}.on{fill:%s}.bad{fill:%s}.open{fill:%s}.pill{fill:%s}.mut{color:%s}.red{color:%s}",
		p.ground, p.text, p.muted, p.band, p.accent, p.ground, p.failed, p.open, p.pill, p.muted, p.failed)
	for i, c := range p.lanes {
		fmt.Fprintf(&b, ".c%d{color:%s}", i, c)
	}
	return b.String()
}

// sheet is the style sheet of a theme.
func (t Theme) sheet() string {
	const common = "text{font:13px system-ui,-apple-system,'Segoe UI','Noto Sans',sans-serif}" +
		".p{font:11px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}.n{font-size:9px;font-weight:600;text-anchor:middle}.s{font-size:12px}.b{font-weight:600}" +
		".e{fill:none;stroke:currentColor;stroke-width:1.6}.h{stroke-width:2.6}.d{stroke-dasharray:4 3}.g{opacity:.6}" +
		".r{stroke:currentColor;stroke-width:1.8}.k{fill:currentColor;stroke:none}"
	switch t {
	case ThemeLight:
		return common + lightPalette().rules()
	case ThemeDark:
		return common + darkPalette().rules()
	default:
		return common + lightPalette().rules() + "@media (prefers-color-scheme:dark){" + darkPalette().rules() + "}"
	}
}
