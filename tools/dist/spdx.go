package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"time"
)

// The types below are the used part of SPDX 2.3.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		DataLicence   string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID        string          `json:"SPDXID"`
		Name      string          `json:"name"`
		Version   string          `json:"versionInfo"`
		FileName  string          `json:"packageFileName,omitempty"`
		Location  string          `json:"downloadLocation"`
		Analyzed  bool            `json:"filesAnalyzed"`
		Concluded string          `json:"licenseConcluded"`
		Declared  string          `json:"licenseDeclared"`
		Copyright string          `json:"copyrightText"`
		Purpose   string          `json:"primaryPackagePurpose"`
		Comment   string          `json:"comment,omitempty"`
		Checksums []spdxChecksum  `json:"checksums,omitempty"`
		Refs      []spdxReference `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		Of   string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const (
	// unknown is the value of SPDX for information that has not been examined.
	unknown    = "NOASSERTION"
	documentID = "SPDXRef-DOCUMENT"
	ownModule  = "github.com/cellserver/cellserver"
)

// bill returns the bill of materials of a program: its modules, with versions, licences and the
// checksums of go.sum.
func (r *release) bill(p *program, name, binary string, content []byte, modules []module) ([]byte, error) {
	programID, address := "SPDXRef-"+p.name, path.Join(ownModule, p.module)
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	document := spdxDocument{
		Version: "SPDX-2.3", DataLicence: "CC0-1.0", ID: documentID, Name: name,
		Namespace: "https://" + ownModule + "/spdx/" + name + "-" + sum,
		Creation:  spdxCreation{Created: r.date.Format(time.RFC3339), Creators: []string{"Tool: cellserver-dist"}},
		Packages: []spdxPackage{{
			ID: programID, Name: p.name, Version: r.version, FileName: binary, Location: unknown,
			Concluded: "MIT", Declared: "MIT", Copyright: unknown, Purpose: "APPLICATION",
			Checksums: []spdxChecksum{{"SHA256", sum}}, Refs: []spdxReference{purl(address, "v"+r.version)},
		}},
		Relationships: []spdxRelationship{{documentID, "DESCRIBES", programID}},
	}
	for _, m := range modules {
		part := m.spdx()
		document.Packages = append(document.Packages, part)
		document.Relationships = append(document.Relationships, spdxRelationship{programID, "DEPENDS_ON", part.ID})
	}
	text, err := json.MarshalIndent(document, "", "  ")
	return append(text, '\n'), err
}

func (m *module) spdx() spdxPackage {
	p := spdxPackage{
		ID: moduleID(m.path), Name: m.path, Version: m.version, Location: unknown,
		Concluded: m.licence, Declared: m.declared, Copyright: unknown, Purpose: "LIBRARY",
		Refs: []spdxReference{purl(m.path, m.version)},
	}
	if m.sum != "" {
		p.Comment = "go.sum: " + m.sum
	}
	return p
}

// purl returns the package URL of a Go module, which vulnerability scanners use.
func purl(path, version string) spdxReference {
	return spdxReference{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}
}

// notOfAnID matches the characters that an identifier of SPDX may not contain.
var notOfAnID = regexp.MustCompile(`[^A-Za-z0-9.-]`)

func moduleID(path string) string { return "SPDXRef-" + notOfAnID.ReplaceAllString(path, "-") }
