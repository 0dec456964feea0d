/** The targets of `@SkipRateLimit`: classes and functions, and methods by their prototype and name. */
const skipped = new WeakSet<object>()
const skippedNames = new WeakMap<object, Set<PropertyKey>>()

type NamedFunction = (...args: never[]) => unknown

type SkipDecorator = (target: object, name?: unknown, descriptor?: PropertyDescriptor) => void

/** Lets the calls to a controller, or to one of its handlers, pass Nest's guard without a decision: `@SkipRateLimit()`. */
export function SkipRateLimit(): SkipDecorator {
  return (target, name, descriptor) => {
    if (typeof name !== 'string' && typeof name !== 'symbol') {
      skipped.add(target)
      return
    }
    if (typeof descriptor?.value === 'function') skipped.add(descriptor.value)
    const names = skippedNames.get(target) ?? new Set()
    // another decorator may replace the method with its own function
    skippedNames.set(target, names.add(name))
  }
}

export function isSkipped(controller: { readonly name: string; prototype?: unknown }, handler: NamedFunction): boolean {
  if (skipped.has(handler) || isClassSkipped(controller)) return true
  for (
    let at = controller.prototype as object | null;
    at !== null && at !== undefined;
    at = Object.getPrototypeOf(at)
  ) {
    if (skippedNames.get(at)?.has(handler.name)) return true
    if (Object.hasOwn(at, handler.name)) return false
  }
  return false
}

function isClassSkipped(controller: object): boolean {
  for (let at: object | null = controller; at !== null; at = Object.getPrototypeOf(at)) if (skipped.has(at)) return true
  return false
}
