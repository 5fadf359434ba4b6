# zsh -f offers.zsh FOLDER LINE...: prints for each LINE the words that zsh offers, each between
# < and >, when somebody types it and the tabulator. FOLDER has the file _cellserver.
#
# Completion works in an interactive shell only: this starts one on a terminal of its own, with
# compadd replaced by one that prints what it is given.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT= RPROMPT=; stty -echo; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D; autoload -Uz _cellserver; compdef _cellserver cellserver"
zpty -w shell '
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  typeset -a offers
  builtin compadd -A offers "$@"
  [[ -n $offers ]] && print -rl -- "<"${^offers}">"
}
finish() { comppostfuncs=(finish); print -r -- "-- end ""of offers --" }
zle -C look complete-word _generic
bindkey "^I" complete-word
comppostfuncs=(finish)
print -r -- "-- shell ""ready --"'
zpty -r shell said '*-- shell ready --*'
for line in "${@[2,-1]}"; do
  zpty -n -w shell $'\C-u'"$line"$'\t'
  zpty -r shell said '*-- end of offers --*'
  print -r -- "$said"
done
zpty -d shell
