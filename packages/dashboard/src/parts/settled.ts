import { useEffect, useState } from 'preact/hooks'

const AFTER_MS = 250

/** Returns a value once it has stayed the same for a moment, so that typed text is not asked about letter by letter. */
export function useSettled<Value>(value: Value): Value {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(() => value), AFTER_MS)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}
