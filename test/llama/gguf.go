package llama

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
)

// ContextTokens is the context window of the model that [Start] runs.
const ContextTokens = 2048

// The shape of the model: two layers of the llama architecture, small enough that
// writing, loading and running it takes no time.
const (
	width     = 64
	hidden    = 128
	layers    = 2
	heads     = 4
	kvHeads   = 2
	headWidth = width / heads
	kvWidth   = kvHeads * headWidth
	// special is how many tokens stand before the printable ones: unknown, begin,
	// end, and one for each byte.
	special = 3 + 256
)

// WriteModel writes a language model with random weights to w, in the GGUF format
// (version 3, the format of llama.cpp). Its replies are noise made of printable
// characters, but tokeniser, context window, streaming and errors are as real as
// those of any model. window is its context window in tokens. The same seed gives the
// same bytes.
func WriteModel(w io.Writer, seed uint64, window int) error {
	f := &file{rnd: rand.New(rand.NewPCG(seed, 0))}
	tokens := vocabulary()
	f.describe(tokens, window)
	f.weigh(len(tokens))
	if _, err := w.Write(f.bytes()); err != nil {
		return fmt.Errorf("writing the model: %w", err)
	}
	return nil
}

// token is an entry of the vocabulary; kind is a token type of GGUF.
type token struct {
	text string
	kind int32
}

// vocabulary returns the tokens: each byte has one, so that any text can be read,
// and printable characters and some pairs have their own.
func vocabulary() []token {
	const normal, unknown, control, single = 1, 2, 3, 6
	tokens := []token{{"<unk>", unknown}, {"<s>", control}, {"</s>", control}}
	for b := range 256 {
		tokens = append(tokens, token{fmt.Sprintf("<0x%02X>", b), single})
	}
	// U+2581 stands for a space, as in SentencePiece.
	texts := strings.Split("▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,;:!?-()", "")
	texts = append(texts, "▁the", "▁a", "▁to", "▁of", "▁and", "th", "he", "in", "er", "an", "re", "on", "at", "en", "nd")
	for _, t := range texts {
		tokens = append(tokens, token{t, normal})
	}
	return tokens
}

// file collects the parts of a GGUF file.
type file struct {
	rnd         *rand.Rand
	pairs       bytes.Buffer
	pairCount   uint64
	infos       bytes.Buffer
	tensorCount uint64
	data        bytes.Buffer
}

// describe writes the metadata.
func (f *file) describe(tokens []token, window int) {
	f.text("general.architecture", "llama")
	f.text("general.name", "convls-noise")
	f.number("llama.context_length", uint32(window))
	f.number("llama.embedding_length", width)
	f.number("llama.block_count", layers)
	f.number("llama.feed_forward_length", hidden)
	f.number("llama.attention.head_count", heads)
	f.number("llama.attention.head_count_kv", kvHeads)
	f.number("llama.rope.dimension_count", headWidth)
	f.number("llama.vocab_size", uint32(len(tokens)))
	f.key("llama.attention.layer_norm_rms_epsilon", typeFloat32)
	put(&f.pairs, float32(1e-5))
	f.text("tokenizer.ggml.model", "llama")
	f.number("tokenizer.ggml.unknown_token_id", 0)
	f.number("tokenizer.ggml.bos_token_id", 1)
	f.number("tokenizer.ggml.eos_token_id", 2)
	f.array("tokenizer.ggml.tokens", typeString, len(tokens))
	for _, t := range tokens {
		putString(&f.pairs, t.text)
	}
	f.array("tokenizer.ggml.scores", typeFloat32, len(tokens))
	for i := range tokens {
		// The tokeniser merges the pair with the best score first.
		put(&f.pairs, float32(min(0, special-1-i)))
	}
	f.array("tokenizer.ggml.token_type", typeInt32, len(tokens))
	for _, t := range tokens {
		put(&f.pairs, t.kind)
	}
	f.text("tokenizer.chat_template", "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:")
}

// weigh writes the tensors of a model with a vocabulary of n tokens.
func (f *file) weigh(n int) {
	random := func(scale float32) func(int) float32 {
		return func(int) float32 { return scale * (f.rnd.Float32() - 0.5) }
	}
	one := func(int) float32 { return 1 }
	f.tensor("token_embd.weight", random(2), width, n)
	for i := range layers {
		name := func(s string) string { return fmt.Sprintf("blk.%d.%s.weight", i, s) }
		f.tensor(name("attn_norm"), one, width)
		f.tensor(name("attn_q"), random(0.4), width, width)
		f.tensor(name("attn_k"), random(0.4), width, kvWidth)
		f.tensor(name("attn_v"), random(0.4), width, kvWidth)
		f.tensor(name("attn_output"), random(0.4), width, width)
		f.tensor(name("ffn_norm"), one, width)
		f.tensor(name("ffn_gate"), random(0.4), width, hidden)
		f.tensor(name("ffn_down"), random(0.4), hidden, width)
		f.tensor(name("ffn_up"), random(0.4), width, hidden)
	}
	f.tensor("output_norm.weight", one, width)
	// The special tokens all get the same middling score, so that they are hardly
	// ever chosen: replies are printable and seldom end by themselves.
	spread := random(1.2)
	f.tensor("output.weight", func(i int) float32 {
		if i < special*width {
			return 0
		}
		return spread(i)
	}, width, n)
}

// The value types of GGUF metadata.
const (
	typeUint32  uint32 = 4
	typeInt32   uint32 = 5
	typeFloat32 uint32 = 6
	typeString  uint32 = 8
	typeArray   uint32 = 9
)

// alignment is that of tensor data, GGUF's default.
const alignment = 32

func put[T uint32 | uint64 | int32 | float32](b *bytes.Buffer, v T) {
	switch v := any(v).(type) {
	case uint32:
		b.Write(binary.LittleEndian.AppendUint32(nil, v))
	case uint64:
		b.Write(binary.LittleEndian.AppendUint64(nil, v))
	case int32:
		b.Write(binary.LittleEndian.AppendUint32(nil, uint32(v)))
	case float32:
		b.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
	}
}

func putString(b *bytes.Buffer, s string) {
	put(b, uint64(len(s)))
	b.WriteString(s)
}

func pad(b *bytes.Buffer) {
	for b.Len()%alignment != 0 {
		b.WriteByte(0)
	}
}

func (f *file) key(name string, kind uint32) {
	putString(&f.pairs, name)
	put(&f.pairs, kind)
	f.pairCount++
}

func (f *file) text(name, value string) {
	f.key(name, typeString)
	putString(&f.pairs, value)
}

func (f *file) number(name string, value uint32) {
	f.key(name, typeUint32)
	put(&f.pairs, value)
}

// array begins an array; its n elements follow.
func (f *file) array(name string, kind uint32, n int) {
	f.key(name, typeArray)
	put(&f.pairs, kind)
	put(&f.pairs, uint64(n))
}

// tensor adds a tensor of 32-bit floats with the given dimensions, the fastest
// first, as GGUF has them.
func (f *file) tensor(name string, value func(i int) float32, dims ...int) {
	const float32Tensor uint32 = 0
	putString(&f.infos, name)
	put(&f.infos, uint32(len(dims)))
	n := 1
	for _, d := range dims {
		put(&f.infos, uint64(d))
		n *= d
	}
	put(&f.infos, float32Tensor)
	put(&f.infos, uint64(f.data.Len()))
	f.tensorCount++
	for i := range n {
		put(&f.data, value(i))
	}
	pad(&f.data)
}

// bytes joins the parts.
func (f *file) bytes() []byte {
	var b bytes.Buffer
	b.WriteString("GGUF")
	put(&b, uint32(3))
	put(&b, f.tensorCount)
	put(&b, f.pairCount)
	b.Write(f.pairs.Bytes())
	b.Write(f.infos.Bytes())
	pad(&b)
	b.Write(f.data.Bytes())
	return b.Bytes()
}
