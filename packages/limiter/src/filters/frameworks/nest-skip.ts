import { DianaError } from '../../errors.ts'
import { show } from '../../rules/show.ts'

/** The rules that a decorator leaves out; `all` without names. */
type Skipped = ReadonlySet<string> | 'all'

/** The limits that are skipped on classes and functions, and on methods by their prototype and name. */
const skipped = new WeakMap<object, Skipped>()
const skippedNames = new WeakMap<object, Map<PropertyKey, Skipped>>()

type NamedFunction = (...args: never[]) => unknown

type SkipDecorator = (target: object, name?: unknown, descriptor?: PropertyDescriptor) => void

/**
 * Lets the calls to a controller, or to one of its handlers, pass Nest's guard without a decision: `@SkipRateLimit()`; or without the
 * rules that it names: `@SkipRateLimit('short')`.
 */
export function SkipRateLimit(...rules: readonly string[]): SkipDecorator {
  const wrong = rules.find(rule => typeof rule !== 'string' || rule === '')
  if (wrong !== undefined || rules.some(rule => rule === undefined)) {
    throw new DianaError(
      'BAD_RULES',
      `@SkipRateLimit takes ids of rules, as in @SkipRateLimit('short'), not ${show(wrong)}`,
    )
  }
  const added: Skipped = rules.length === 0 ? 'all' : new Set(rules)
  return (target, name, descriptor) => {
    if (typeof name !== 'string' && typeof name !== 'symbol') {
      skipped.set(target, join(skipped.get(target), added))
      return
    }
    const { value } = descriptor ?? {}
    if (typeof value === 'function') skipped.set(value, join(skipped.get(value), added))
    const names = skippedNames.get(target) ?? new Map<PropertyKey, Skipped>()
    // another decorator may replace the method with its own function
    skippedNames.set(target, names.set(name, join(names.get(name), added)))
  }
}

/** Returns the limits that the decorators of a handler and of its controller leave out; undefined if there are none. */
export function skippedBy(
  controller: { readonly name: string; prototype?: unknown },
  handler: NamedFunction,
): Skipped | undefined {
  let found = join(skipped.get(handler), ofClass(controller))
  for (
    let at = controller.prototype as object | null;
    at !== null && at !== undefined;
    at = Object.getPrototypeOf(at)
  ) {
    found = join(found, skippedNames.get(at)?.get(handler.name))
    if (Object.hasOwn(at, handler.name)) break
  }
  return found
}

function ofClass(controller: object): Skipped | undefined {
  let found: Skipped | undefined
  for (let at: object | null = controller; at !== null; at = Object.getPrototypeOf(at)) {
    found = join(found, skipped.get(at))
  }
  return found
}

function join(one: Skipped | undefined, other: Skipped): Skipped
function join(one: Skipped | undefined, other: Skipped | undefined): Skipped | undefined
function join(one: Skipped | undefined, other: Skipped | undefined): Skipped | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return one === 'all' || other === 'all' ? 'all' : new Set([...one, ...other])
}
