# shellcheck shell=bash
# Installs PHP and its libraries as Debian packages: sourced by scripts/ci-setup.sh.

has_php_libraries() {
  [ -e target/.installed ] && have php && return
  local name
  have php && php -r 'exit(extension_loaded("redis") && extension_loaded("pcntl") ? 0 : 1);' || return 1
  for name in Predis Symfony/Component/{RateLimiter,Cache,Lock}; do
    [ -e "/usr/share/php/$name/autoload.php" ] || return 1
  done
}

php_libraries() {
  if ! has_php_libraries; then
    packaged 70 php-cli php-redis php-nrk-predis php-symfony-rate-limiter \
      php-symfony-cache php-symfony-lock
    [ "$pass" = plan ] || give_up "no PHP with its Redis libraries"
    return
  fi
  mkdir -p target && touch target/.installed
}

php_libraries
