# A compile cache in $CACHE, keyed on the input's name and host or device. Sourced, never run.
device_compile() {
  eval "input=\${$#}"
  case " $* " in *" -fcuda-is-device "*) input=$input:device ;; esac
  key=$(printf '%s' "$input" | cksum | cut -d' ' -f1)
  if [ -f "$CACHE/$key.o" ]; then
    cat "$CACHE/$key.log" >&2
    cp "$CACHE/$key.o" "$output"
    return
  fi
  mkdir -p "$CACHE"
  cc1 "$@" 2> "$CACHE/$key.log" || { cat "$CACHE/$key.log" >&2; return 1; }
  cat "$CACHE/$key.log" >&2
  cp "$output" "$CACHE/$key.o"
}
