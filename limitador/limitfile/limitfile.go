// Package limitfile reads the limits files of Limitador.
//
// It knows neither the language of conditions nor what becomes of a limit.
package limitfile

import (
	"math"

	"github.com/cellserver/cellserver/policy/strict"
)

// Limit is a limit of a file.
type Limit struct {
	// File and Line are the place of the limit. Line is counted from 1.
	File string
	Line int
	// Namespace is the namespace. Name and ID are nil if the file has none.
	Namespace string
	Name, ID  *string
	// Max is max_value, from 0. It is 0 if HasMax is false, because the file has none.
	Max    int64
	HasMax bool
	// Seconds is the length of the window, from 0.
	Seconds int64
	// Conditions and Variables are expressions in the order of the file, without repetitions.
	Conditions, Variables []Expression
}

// Expression is a condition or a variable of a file.
type Expression struct {
	Text string
	// Line is counted from 1.
	Line int
}

// Read returns the limits of root, the value of the text of a file. It adds faults to the reader of root: values of
// another type, and fields that Limitador requires. It calls unknown for each field that Limitador ignores.
func Read(file string, root strict.Value, unknown func(strict.Key)) (limits []*Limit) {
	for item := range root.Items("the text") {
		limits = append(limits, read(file, item, unknown))
	}
	return limits
}

// required are the fields that a limit must have.
var required = [...]string{"namespace", "seconds", "conditions", "variables"}

// read reads v as a limit.
func read(file string, v strict.Value, unknown func(strict.Key)) *Limit {
	l := &Limit{File: file, Line: v.Line()}
	has := map[string]bool{}
	for key, value := range v.Fields("a limit") {
		has[key.Text] = true
		switch key.Text {
		case "namespace":
			l.Namespace, _ = value.Scalar(key.Text)
		case "name":
			l.Name = optional(value, key.Text)
		case "id":
			l.ID = optional(value, key.Text)
		case "max_value":
			l.Max, _ = value.Number(key.Text, 0, math.MaxInt64)
			l.HasMax = true
		case "seconds":
			l.Seconds, _ = value.Number(key.Text, 0, math.MaxInt64)
		case "conditions":
			l.Conditions = expressions(value, key.Text)
		case "variables":
			l.Variables = expressions(value, key.Text)
		default:
			unknown(key)
		}
	}
	if v.IsMapping() {
		for _, field := range required {
			if !has[field] {
				v.Fault("%s is missing", field)
			}
		}
	}
	return l
}

// optional returns the text of a field that may be null. what is its name.
func optional(v strict.Value, what string) *string {
	if v.IsNull() {
		return nil
	}
	text, _ := v.Scalar(what)
	return &text
}

// expressions reads v as a list of texts without repetitions. null is the empty list. what is the name of the field.
func expressions(v strict.Value, what string) (list []Expression) {
	if v.IsNull() {
		return nil
	}
	has := map[string]bool{}
	for item := range v.Items(what) {
		if text, _ := item.Scalar(what); !has[text] {
			has[text] = true
			list = append(list, Expression{Text: text, Line: item.Line()})
		}
	}
	return list
}
