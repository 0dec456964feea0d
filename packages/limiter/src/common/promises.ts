import { warnWhile } from './warn-once.ts'

/** True if a value is a promise of any library. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  return typeof (value as { readonly then?: unknown }).then === 'function'
}

/** True if a function is declared async, and so can never return a value itself. */
export function isAsyncFunction(value: unknown): boolean {
  return typeof value === 'function' && /^Async(?:Generator)?Function$/.test(value.constructor.name)
}

/** Returns the return value of an application's function; a promise is reported to the operator and counts as no value. */
export function valueNow<T>(value: T, name: string): T | undefined {
  if (!isThenable(value)) return value
  warnWhile('DIANA_ASYNC_FUNCTION', name, name)
  // its rejection is of no more interest than its value
  Promise.resolve(value).catch(() => {})
  return undefined
}
