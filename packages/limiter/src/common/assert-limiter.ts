import { DianaError } from '../errors.ts'

/** Throws, with the remedy, unless a limiter was given; `caller` is the function that got it: `diana`. */
export function assertLimiter(given: unknown, caller: string): void {
  if (isLimiter(given)) return
  throw new DianaError('BAD_CALL', `${caller} ${faultOf(given, caller)}`)
}

/** Limiters may come from another version of the package, so instanceof does not work. */
function isLimiter(given: unknown): boolean {
  return isObject(given) && typeof given.decide === 'function' && typeof given.addRule === 'function'
}

function faultOf(given: unknown, caller: string): string {
  const remedy = `${caller}(await createLimiter({ rules: [{ id: 'all', limit: '100/m' }] }))`
  if (given === undefined || given === null) return `was given no limiter: make one, as in ${remedy}`
  // an application of Fastify has a `then` too
  if (isObject(given) && typeof given.then === 'function' && !('register' in given)) {
    return `was given a promise of a limiter: await it first, as in ${remedy}`
  }
  if (isObject(given) && ['rules', 'config', 'rule', 'limit'].some(word => word in given)) {
    return `was given options instead of a limiter: make one, as in ${remedy}`
  }
  if (typeof given === 'function' && given.name === 'createLimiter') {
    return `was given createLimiter itself: call and await it, as in ${remedy}`
  }
  return `was given something that is not a limiter: write ${caller}(limiter), not ${caller} itself, where it is mounted`
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
