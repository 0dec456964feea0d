import { DianaError } from '../errors.ts'
import { Annotation, assertRateLimitOptions, type RateLimitOptions } from './annotation.ts'
import { limit } from './wrap-function.ts'

type Method = (this: unknown, ...args: never[]) => unknown
type Class = abstract new (...args: never[]) => unknown

/** The result of `RateLimit`: a decorator for classes and methods, in the standard's way or TypeScript's older one. */
export interface RateLimitDecorator {
  <M extends (this: never, ...args: never[]) => unknown>(method: M, context: ClassMethodDecoratorContext): M
  <C extends Class>(value: C, context: ClassDecoratorContext): void
  (target: object, name: string | symbol, descriptor: PropertyDescriptor): void
  (target: Class): void
}

interface Limited {
  readonly work: Method
  readonly annotations: readonly Annotation[]
  readonly on: 'class' | 'method'
}

/** The decorators of classes, and of methods by their class or prototype and name. */
const onClasses = new WeakMap<object, readonly RateLimitOptions[]>()
const onMethods = new WeakMap<object, Map<PropertyKey, readonly RateLimitOptions[]>>()
const onFunctions = new WeakMap<object, readonly RateLimitOptions[]>()
const limitedMethods = new WeakMap<object, Limited>()

/**
 * Limits how often a method may be called, or the methods of a class together; a method's own limit wins over that of its
 * class. Several may be stacked: all must hold, and a call that one refuses is charged by none.
 *
 * It works as the standard has decorators and as TypeScript had them before (`experimentalDecorators`). What stands on a
 * controller of Nest is left to the guard, which knows the request.
 */
export function RateLimit(words: RateLimitOptions): RateLimitDecorator {
  assertRateLimitOptions(words)
  const decorate = (target: object, context: unknown, descriptor?: PropertyDescriptor): unknown => {
    if (isStandard(context)) return decorateStandard(target, context, words)
    if (context === undefined && typeof target === 'function') {
      note(onClasses, target, words)
      limitClass(target as Class, new Annotation(words))
      return undefined
    }
    if (typeof descriptor?.value !== 'function') throw misplaced()
    const name = context as PropertyKey
    noteMethod(target, name, descriptor.value, words)
    return { ...descriptor, value: limitMethod(descriptor.value as Method, new Annotation(words), name) }
  }
  return decorate as RateLimitDecorator
}

/** Returns the options of the decorators of a method, or else of its class; outermost first. */
export function rateLimitsOf(target: Class, method: string | symbol | Method): readonly RateLimitOptions[] {
  const own = typeof method === 'function' ? onFunctions.get(method) : undefined
  if (own) return own
  const name = typeof method === 'function' ? method.name : method
  for (let at: object | null = target.prototype as object; at !== null; at = Object.getPrototypeOf(at)) {
    const words = onMethods.get(at)?.get(name)
    if (words) return words
    if (Object.hasOwn(at, name)) {
      const value: unknown = Object.getOwnPropertyDescriptor(at, name)?.value
      const found = typeof value === 'function' ? onFunctions.get(value) : undefined
      if (found) return found
      break
    }
  }
  for (let at: object | null = target; at !== null; at = Object.getPrototypeOf(at)) {
    const words = onClasses.get(at)
    if (words) return words
  }
  return []
}

type StandardContext = ClassDecoratorContext | ClassMethodDecoratorContext

function isStandard(context: unknown): context is StandardContext {
  return typeof context === 'object' && context !== null && 'kind' in context
}

function decorateStandard(target: object, context: StandardContext, words: RateLimitOptions): unknown {
  const annotation = new Annotation(words)
  annotation.assertCallable()
  if (context.kind === 'method') return limitMethod(target as Method, annotation, context.name)
  if (context.kind !== 'class') throw misplaced()
  note(onClasses, target, words)
  limitClass(target as Class, annotation)
  return undefined
}

function limitMethod(method: Method, annotation: Annotation, name: PropertyKey): Method {
  const inner = limitedMethods.get(method)
  const annotations = [annotation, ...(inner?.annotations ?? [])]
  const work = inner?.work ?? method
  const limited = limit(work, annotations, (self, limited) => `${ownerOf(self, name, limited)}.${String(name)}`)
  limitedMethods.set(limited, { work, annotations, on: 'method' })
  copyMetadata(method, limited)
  onFunctions.set(
    limited,
    annotations.map(one => one.words),
  )
  return limited
}

/** Limits the methods of a class, which count together; those with limits of their own keep to these. */
function limitClass(target: Class, annotation: Annotation): void {
  const prototype = target.prototype as object
  for (const name of Reflect.ownKeys(prototype)) {
    const descriptor = Object.getOwnPropertyDescriptor(prototype, name)!
    const method: unknown = descriptor.value
    if (name === 'constructor' || typeof method !== 'function' || !descriptor.configurable) continue
    const inner = limitedMethods.get(method)
    if (inner?.on === 'method') continue
    const annotations = [annotation, ...(inner?.annotations ?? [])]
    const work = inner?.work ?? (method as Method)
    const limited = limit(work, annotations, () => target.name)
    limitedMethods.set(limited, { work, annotations, on: 'class' })
    copyMetadata(method, limited)
    Object.defineProperty(prototype, name, { ...descriptor, value: limited })
  }
}

/** The notes of other decorators on a method, such as its route, in the way of the package reflect-metadata. */
interface Metadata {
  getOwnMetadataKeys?(target: object): unknown[]
  getOwnMetadata?(key: unknown, target: object): unknown
  defineMetadata?(key: unknown, value: unknown, target: object): void
}

function copyMetadata(from: object, to: object): void {
  const metadata = Reflect as Metadata
  for (const key of metadata.getOwnMetadataKeys?.(from) ?? []) {
    metadata.defineMetadata?.(key, metadata.getOwnMetadata?.(key, from), to)
  }
}

/** Returns the name of the class that defines a method, which may be a base class of the object's class. */
function ownerOf(self: unknown, name: PropertyKey, method: Method): string {
  if (typeof self === 'function') return self.name
  for (let at: unknown = self; typeof at === 'object' && at !== null; at = Object.getPrototypeOf(at)) {
    if (Object.getOwnPropertyDescriptor(at, name)?.value === method) return at.constructor.name
  }
  return 'method'
}

function noteMethod(target: object, name: PropertyKey, method: object, words: RateLimitOptions): void {
  const known = onMethods.get(target) ?? new Map<PropertyKey, readonly RateLimitOptions[]>()
  onMethods.set(target, known.set(name, [words, ...(known.get(name) ?? [])]))
  note(onFunctions, method, words)
}

function note(notes: WeakMap<object, readonly RateLimitOptions[]>, target: object, words: RateLimitOptions): void {
  notes.set(target, [words, ...(notes.get(target) ?? [])])
}

function misplaced(): DianaError {
  return new DianaError('BAD_RULES', '@RateLimit stands on a class or a method: move it there')
}
