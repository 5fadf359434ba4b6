# shellcheck shell=bash
# Installs Ruby and its libraries as Debian packages: sourced by scripts/ci-setup.sh.

has_ruby_libraries() {
  have ruby && ruby -e 'gem "redis"; gem "rack-attack"' 2>/dev/null
}

ruby_libraries() {
  if ! has_ruby_libraries; then
    if [ "$(id -u)" != 0 ] || ! have apt-get; then
      give_up "no Ruby with redis-rb and rack-attack, and this is not root on Debian"
      return
    fi
    echo "installing Ruby and its libraries"
    install_packages ruby ruby-redis ruby-rack-attack ||
      { give_up "apt could not install Ruby and its libraries"; return; }
  fi
  mkdir -p target && touch target/.installed
}

ruby_libraries
