#include "textflag.h"

// func touch(at []unsafe.Pointer)
TEXT ·touch(SB), NOSPLIT, $0-24
	MOVQ at_base+0(FP), SI
	MOVQ at_len+8(FP), CX
	TESTQ CX, CX
	JEQ  done

next:
	MOVQ (SI), AX
	PREFETCHT0 (AX)
	ADDQ $8, SI
	DECQ CX
	JNE  next

done:
	RET
