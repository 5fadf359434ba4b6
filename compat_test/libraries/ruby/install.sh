# shellcheck shell=bash
# Installs Ruby and its libraries as Debian packages: sourced by scripts/ci-setup.sh.

has_ruby_libraries() {
  [ -e target/.installed ] && have ruby && return
  have ruby && ruby -e 'gem "redis"; gem "rack-attack"' 2>/dev/null
}

ruby_libraries() {
  if ! has_ruby_libraries; then
    packaged 30 ruby ruby-redis ruby-rack-attack
    [ "$pass" = plan ] || give_up "no Ruby with redis-rb and rack-attack"
    return
  fi
  mkdir -p target && touch target/.installed
}

ruby_libraries
