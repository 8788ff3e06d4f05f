//go:build ignore

// draw turns what a terminal shows, with its colours as escape sequences, into a PNG:
//
//	go run docs/neovim/draw.go FONTS PAGE SCREEN PICTURE
//
// FONTS is a folder with the fonts DejaVu, PAGE the colour of the background, as six
// hexadecimal digits.
package main

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// At this size a sign is about as wide as whole pixels are, so that lines which go
// through several places meet.
const (
	size   = 20
	wide   = 12
	high   = 23
	ascent = 18
	edge   = 14
	// Few steps between two colours keep the file small; nobody sees the difference.
	steps = 15
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 5 {
		log.Fatal("usage: go run docs/neovim/draw.go FONTS PAGE SCREEN PICTURE")
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		log.Fatal("draw: ", err)
	}
}

func run(fonts, page, from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	styled := uv.NewStyledString(strings.TrimSuffix(string(text), "\n"))
	bounds := styled.Bounds()
	screen := uv.NewScreenBuffer(bounds.Dx(), bounds.Dy())
	styled.Draw(screen, bounds)
	var p picture
	for i, name := range []string{"DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf", "DejaVuSans.ttf"} {
		size := float64(size)
		if i == other {
			size *= 0.7
		}
		if p.fonts[i], p.faces[i], err = face(filepath.Join(fonts, name), size); err != nil {
			return err
		}
	}
	number, err := strconv.ParseUint(page, 16, 24)
	if err != nil {
		return fmt.Errorf("the page's colour: %w", err)
	}
	p.page = color.RGBA{uint8(number >> 16), uint8(number >> 8), uint8(number), 0xff}
	p.RGBA = image.NewRGBA(image.Rect(0, 0, bounds.Dx()*wide+2*edge, bounds.Dy()*high+2*edge))
	draw.Draw(p, p.Rect, image.NewUniform(p.page), image.Point{}, draw.Src)
	// A sign may be wider than its place: all backgrounds come first.
	for _, layer := range []func(x, y int, c *uv.Cell) error{p.ground, p.sign} {
		for y := range bounds.Dy() {
			for x := range bounds.Dx() {
				c := screen.CellAt(x, y)
				if c == nil || c.Width == 0 { // the right half of a wide sign
					continue
				}
				if err := layer(x, y, c); err != nil {
					return err
				}
			}
		}
	}
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(file, paletted(p.RGBA)); err != nil {
		return err
	}
	return file.Close()
}

func face(path string, size float64) (*opentype.Font, font.Face, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	f, err := opentype.Parse(data)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	drawn, err := opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72})
	return f, drawn, err
}

func rgba(c color.Color) color.RGBA {
	return color.RGBAModel.Convert(c).(color.RGBA)
}

// The fonts. What the first two lack is taken from the last, smaller, since its signs are
// wider.
const (
	regular = iota
	bold
	other
	count
)

type picture struct {
	*image.RGBA
	page  color.RGBA
	fonts [count]*opentype.Font
	faces [count]font.Face
}

// colors returns the background and the foreground of a place.
func (p picture) colors(c *uv.Cell) (bg, fg color.RGBA) {
	bg, fg = p.page, color.RGBA{0x80, 0x80, 0x80, 0xff}
	if c.Style.Bg != nil {
		bg = rgba(c.Style.Bg)
	}
	if c.Style.Fg != nil {
		fg = rgba(c.Style.Fg)
	}
	if c.Style.Attrs&uv.AttrReverse != 0 {
		bg, fg = fg, bg
	}
	return bg, fg
}

func (p picture) ground(x, y int, c *uv.Cell) error {
	bg, _ := p.colors(c)
	left, top := edge+x*wide, edge+y*high
	place := image.Rect(left, top, left+c.Width*wide, top+high)
	draw.Draw(p, place, image.NewUniform(bg), image.Point{}, draw.Src)
	return nil
}

func (p picture) sign(x, y int, c *uv.Cell) error {
	_, fg := p.colors(c)
	left, base := edge+x*wide, edge+y*high+ascent
	if c.Style.Underline != uv.UnderlineNone {
		line := image.Rect(left, base+2, left+c.Width*wide, base+3)
		draw.Draw(p, line, image.NewUniform(fg), image.Point{}, draw.Src)
	}
	weight := regular
	if c.Style.Attrs&uv.AttrBold != 0 {
		weight = bold
	}
	for _, r := range c.Content {
		f := weight
		if !p.has(f, r) {
			f = other
		}
		if !p.has(f, r) {
			return fmt.Errorf("no font has %q", r)
		}
		at, mask, from, _, ok := p.faces[f].Glyph(fixed.P(left, base), r)
		if !ok {
			return fmt.Errorf("the font can not draw %q", r)
		}
		clip := p.Rect
		if r >= '─' && r <= '╿' { // lines go on in the next place, and must not overlap there
			clip = image.Rect(left, base-ascent, left+wide, base-ascent+high)
		}
		p.blend(at, clip, mask, from, fg)
	}
	return nil
}

func (p picture) has(f int, r rune) bool {
	i, err := p.fonts[f].GlyphIndex(nil, r)
	return err == nil && i != 0
}

// blend puts a colour where a mask is, inside of clip.
func (p picture) blend(at, clip image.Rectangle, mask image.Image, from image.Point, fg color.RGBA) {
	for y := at.Min.Y; y < at.Max.Y; y++ {
		for x := at.Min.X; x < at.Max.X; x++ {
			if !(image.Point{X: x, Y: y}).In(clip) {
				continue
			}
			_, _, _, alpha := mask.At(from.X+x-at.Min.X, from.Y+y-at.Min.Y).RGBA()
			share := (int(alpha)*steps + 0x7fff) / 0xffff
			mix := func(under, over uint8) uint8 {
				return uint8((int(under)*(steps-share) + int(over)*share) / steps)
			}
			u := p.RGBAAt(x, y)
			p.SetRGBA(x, y, color.RGBA{mix(u.R, fg.R), mix(u.G, fg.G), mix(u.B, fg.B), 0xff})
		}
	}
}

// paletted returns the picture with its first 256 colours; any other one becomes the
// nearest of these.
func paletted(from *image.RGBA) *image.Paletted {
	index := map[color.RGBA]uint8{}
	to := image.NewPaletted(from.Rect, nil)
	for y := from.Rect.Min.Y; y < from.Rect.Max.Y; y++ {
		for x := from.Rect.Min.X; x < from.Rect.Max.X; x++ {
			c := from.RGBAAt(x, y)
			i, ok := index[c]
			switch {
			case !ok && len(to.Palette) < 256:
				i = uint8(len(to.Palette))
				to.Palette = append(to.Palette, c)
				index[c] = i
			case !ok:
				i = uint8(to.Palette.Index(c))
				index[c] = i
			}
			to.SetColorIndex(x, y, i)
		}
	}
	return to
}
