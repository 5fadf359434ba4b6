package elements

import (
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/resp"
)

// WriteScore replies a score, in RESP3 as a double.
func WriteScore(w *resp.Writer, score float64) {
	var scratch [32]byte
	text := parse.AppendScore(scratch[:0], score)
	if w.Proto != 3 {
		w.Bulk(text)
		return
	}
	w.Buf = append(append(append(w.Buf, ','), text...), '\r', '\n')
}
