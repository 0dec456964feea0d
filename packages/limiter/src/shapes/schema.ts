import { type ErrorMap, type Finding, type Issue, nameFault, toIssues } from './issue.ts'
import type { StandardSchema } from './standard-schema.ts'

/** A value as far as it is read, and what is wrong with it. */
export interface Reading {
  value: unknown
  findings: Finding[]
}

/** The value as it is read, or all its faults. */
export type ParseResult<Output> =
  | { readonly success: true; readonly data: Output; readonly error?: undefined }
  | { readonly success: false; readonly data?: undefined; readonly error: ShapeError }

/** A value does not fit its schema. */
export class ShapeError extends Error {
  override readonly name = 'ShapeError'
  readonly issues: readonly Issue[]

  constructor(issues: readonly Issue[]) {
    super(issues.map(({ path, message }) => `${path.map(String).join('.')} ${message}`.trim()).join('; '))
    this.issues = issues
  }
}

/** A message, or a function that makes one; `abort` leaves out the checks that follow. */
export type CheckOptions =
  | string
  | { readonly error?: string | ErrorMap | undefined; readonly abort?: boolean | undefined }

/** The object to which a check or a transformation reports faults. */
export interface CheckContext {
  addIssue(issue: {
    readonly code?: 'custom'
    readonly message: string
    readonly path?: readonly PropertyKey[] | undefined
  }): void
  /** Passes on issues of a value that another schema has read. */
  addIssues(issues: readonly Issue[]): void
}

export type Check = (reading: Reading, isAborted: boolean) => void

/** A JSON Schema, of the written value (`input`) or of the value that is read from it (`output`). */
export type JsonSchema = Record<string, unknown>
export type About = JsonSchema | (() => JsonSchema)
export type Direction = 'input' | 'output'

export const vendor = 'diana'

/** The result of a transformation that has reported a fault. */
export const NEVER: never = undefined as never

/** Checks and reads a value. A schema never changes: each method returns another one. */
export abstract class Schema<Output = unknown, Input = unknown> implements StandardSchema<Input, Output> {
  /** True if the value may be missing in what is written; `isOptionalOut`: in what is read. */
  readonly isOptionalIn: boolean = false
  readonly isOptionalOut: boolean = false
  /** Makes the messages of its checks, too, if they have none of their own. */
  readonly error: ErrorMap | undefined = undefined
  readonly checks: readonly Check[] = []
  readonly bounds: JsonSchema = {}
  readonly about: readonly About[] = []

  /** Reads a value without its checks. */
  protected abstract read(input: unknown): Reading

  /** True if the value that is read may differ from the one that was written. */
  get transforms(): boolean {
    return false
  }

  /** True if those who write the value may leave it out. */
  get mayBeLeftOut(): boolean {
    return this.isOptionalIn
  }

  abstract jsonOf(direction: Direction): JsonSchema

  toJson(direction: Direction): JsonSchema {
    return this.wordsOver(this.jsonOf(direction))
  }

  protected wordsOver(schema: JsonSchema): JsonSchema {
    return Object.assign(schema, ...this.about.map(one => (typeof one === 'function' ? one() : one)))
  }

  run(input: unknown): Reading {
    const reading = this.read(input)
    if (this.checks.length === 0) return reading
    let isAborted = aborts(reading)
    for (const check of this.checks) {
      const before = reading.findings.length
      check(reading, isAborted)
      for (let at = before; at < reading.findings.length; at++) {
        const finding = reading.findings[at]!
        isAborted ||= !finding.goesOn
        if (this.error) finding.error ??= this.error
      }
    }
    return reading
  }

  /** Returns the value as it is read, and its faults; those that the schema has no words for have no message. */
  examine(value: unknown): { readonly data: Output; readonly issues: readonly Issue[] } {
    const { value: data, findings } = this.run(value)
    return { data: data as Output, issues: toIssues(findings) }
  }

  safeParse(value: unknown): ParseResult<Output> {
    const { data, issues } = this.examine(value)
    if (issues.length === 0) return { success: true, data }
    const named = issues.map(issue => ({ ...issue, message: issue.message || nameFault(issue) }))
    return { success: false, error: new ShapeError(named) }
  }

  /** Returns the value as it is read; throws a ShapeError if it does not fit. */
  parse(value: unknown): Output {
    const result = this.safeParse(value)
    if (result.success) return result.data
    throw result.error
  }

  get '~standard'(): StandardSchema<Input, Output>['~standard'] {
    const validate = (value: unknown) => {
      const result = this.safeParse(value)
      return result.success ? { value: result.data } : { issues: result.error.issues }
    }
    const jsonSchema = { input: () => this.toJson('input'), output: () => this.toJson('output') }
    return { version: 1, vendor, validate, jsonSchema }
  }

  /** Returns this schema with some of its parts replaced. */
  protected with(parts: object): this {
    const descriptors = { ...Object.getOwnPropertyDescriptors(this), ...Object.getOwnPropertyDescriptors(parts) }
    return Object.create(Object.getPrototypeOf(this), descriptors)
  }

  /** Adds a check, and its bounds in JSON Schema. */
  protected checked(check: Check, bounds: JsonSchema = {}): this {
    return this.with({ checks: [...this.checks, check], bounds: { ...this.bounds, ...bounds } })
  }

  describe(description: string): this {
    return this.meta({ description })
  }

  /** Adds words to the JSON Schema; a function gives them when they are first needed. */
  meta(about: About): this {
    return this.with({ about: [...this.about, about] })
  }

  optional(): OptionalSchema<this> {
    return new OptionalSchema(this)
  }

  /** Allows that the value is left out, but not that it is undefined. */
  exactOptional(): ExactOptionalSchema<this> {
    return new ExactOptionalSchema(this)
  }

  nullish(): OptionalSchema<NullableSchema<this>> {
    return this.nullable().optional()
  }

  nullable(): NullableSchema<this> {
    return new NullableSchema(this)
  }

  /** Reads a missing value as this one. */
  default(value: Exclude<Output, undefined>): DefaultSchema<this> {
    return new DefaultSchema(this, value)
  }

  /** Reads a missing value as if this one was written. */
  prefault(value: Input): PrefaultSchema<this> {
    return new PrefaultSchema(this, value)
  }

  /** Reads a value that does not fit as this one. */
  catch(value: Output): CatchSchema<this> {
    return new CatchSchema(this, value)
  }

  /** Makes another value of one that fits. */
  transform<Made>(make: (value: Output, context: CheckContext) => Made): Schema<Made, Input> {
    return new TransformSchema<Made, Input>(this as Schema, make as (value: unknown, context: CheckContext) => Made)
  }

  refine(fits: (value: Output) => unknown, options: CheckOptions = {}): this {
    const { error, abort } = checkOptions(options)
    return this.checked((reading, isAborted) => {
      if (isAborted || fits(reading.value as Output)) return
      reading.findings.push({ code: 'custom', path: [], input: reading.value, error, goesOn: !abort })
    })
  }

  superRefine(check: (value: Output, context: CheckContext) => void): this {
    return this.checked((reading, isAborted) => {
      if (!isAborted) check(reading.value as Output, contextOf(reading, true))
    })
  }
}

/** A schema of any kind. */
export type AnySchema = StandardSchema<unknown, unknown>

/** The type of values that a schema has read. */
export type output<Of extends AnySchema> =
  NonNullable<Of['~standard']['types']> extends { readonly output: infer Output } ? Output : unknown

/** The type of values that may be written for a schema. */
export type input<Of extends AnySchema> =
  NonNullable<Of['~standard']['types']> extends { readonly input: infer Input } ? Input : unknown

/** True if a finding keeps the value from being checked further. */
export function aborts({ findings }: Reading): boolean {
  return findings.some(({ goesOn }) => !goesOn)
}

export function checkOptions(options: CheckOptions = {}): {
  readonly error: ErrorMap | undefined
  readonly abort: boolean
} {
  const { error, abort = false } = typeof options === 'string' ? { error: options } : options
  return { error: typeof error === 'string' ? () => error : error, abort }
}

/** Findings of a part, with its place in the whole. */
export function within(key: PropertyKey, findings: Finding[]): Finding[] {
  for (const { path } of findings) path.unshift(key)
  return findings
}

function contextOf({ value, findings }: Reading, goesOn: boolean): CheckContext {
  return {
    addIssue({ message, path = [] }) {
      findings.push({ code: 'custom', path: [...path], input: value, message, goesOn })
    },
    addIssues(issues) {
      for (const issue of issues) findings.push({ ...issue, path: [...issue.path], goesOn: false })
    },
  }
}

abstract class WrapperSchema<Inner extends AnySchema, Output, Input> extends Schema<Output, Input> {
  readonly inner: Schema

  constructor(inner: Inner) {
    super()
    this.inner = inner as unknown as Schema
  }

  override get transforms(): boolean {
    return this.inner.transforms
  }

  /** Returns the words that the wrapper adds to the JSON Schema of the inner schema. */
  protected added(_direction: Direction): JsonSchema {
    return {}
  }

  jsonOf(direction: Direction): JsonSchema {
    return this.inner.toJson(direction)
  }

  // its own words first: editors show them in this order
  override toJson(direction: Direction): JsonSchema {
    const own = this.wordsOver(this.added(direction))
    return { ...own, ...this.jsonOf(direction), ...own }
  }
}

export class OptionalSchema<Inner extends AnySchema> extends WrapperSchema<
  Inner,
  output<Inner> | undefined,
  input<Inner> | undefined
> {
  override readonly isOptionalIn = true as const
  override readonly isOptionalOut = true as const

  protected read(input: unknown): Reading {
    if (input === undefined && !this.inner.isOptionalIn) return { value: undefined, findings: [] }
    return this.inner.run(input)
  }
}

export class ExactOptionalSchema<Inner extends AnySchema> extends WrapperSchema<Inner, output<Inner>, input<Inner>> {
  override readonly isOptionalIn = true as const
  override readonly isOptionalOut = true as const

  protected read(input: unknown): Reading {
    return this.inner.run(input)
  }
}

export class NullableSchema<Inner extends AnySchema> extends WrapperSchema<
  Inner,
  output<Inner> | null,
  input<Inner> | null
> {
  override readonly isOptionalIn: boolean

  constructor(inner: Inner) {
    super(inner)
    this.isOptionalIn = this.inner.isOptionalIn
  }

  protected read(input: unknown): Reading {
    return input === null ? { value: null, findings: [] } : this.inner.run(input)
  }

  override jsonOf(direction: Direction): JsonSchema {
    return { anyOf: [this.inner.toJson(direction), { type: 'null' }] }
  }
}

abstract class WithValue<Inner extends AnySchema, Output, Input> extends WrapperSchema<Inner, Output, Input> {
  readonly value: unknown

  constructor(inner: Inner, value: unknown) {
    super(inner)
    this.value = value
  }
}

export class DefaultSchema<Inner extends AnySchema> extends WithValue<
  Inner,
  Exclude<output<Inner>, undefined>,
  input<Inner> | undefined
> {
  override readonly isOptionalIn = true as const

  protected read(input: unknown): Reading {
    return input === undefined ? { value: copyOf(this.value), findings: [] } : this.inner.run(input)
  }

  // the default is a value as it is read, which cannot be written if another one is made of it
  protected override added(direction: Direction): JsonSchema {
    return direction === 'input' && this.inner.transforms ? {} : { default: this.value }
  }
}

export class PrefaultSchema<Inner extends AnySchema> extends WithValue<
  Inner,
  Exclude<output<Inner>, undefined>,
  input<Inner> | undefined
> {
  override readonly isOptionalIn = true as const

  protected read(input: unknown): Reading {
    return this.inner.run(input === undefined ? copyOf(this.value) : input)
  }

  override toJson(direction: Direction): JsonSchema {
    const own = this.wordsOver({})
    const schema = { ...own, ...(direction === 'input' ? { default: this.value } : {}) }
    return { ...schema, ...this.jsonOf(direction), ...schema }
  }
}

export class CatchSchema<Inner extends AnySchema> extends WithValue<Inner, output<Inner>, unknown> {
  override readonly isOptionalIn = true as const

  // a fallback repairs mistakes; it makes no value optional
  override get mayBeLeftOut(): boolean {
    return this.inner.mayBeLeftOut
  }

  protected read(input: unknown): Reading {
    const reading = this.inner.run(input)
    return reading.findings.length === 0 ? reading : { value: copyOf(this.value), findings: [] }
  }

  protected override added(): JsonSchema {
    return { default: this.value }
  }
}

class TransformSchema<Made, Input> extends WrapperSchema<Schema, Made, Input> {
  override readonly isOptionalIn: boolean
  readonly make: (value: unknown, context: CheckContext) => Made

  constructor(inner: Schema, make: (value: unknown, context: CheckContext) => Made) {
    super(inner)
    this.isOptionalIn = inner.isOptionalIn
    this.make = make
  }

  override get transforms(): boolean {
    return true
  }

  protected read(input: unknown): Reading {
    const reading = this.inner.run(input)
    // a value with any fault is not made into another one, and is checked no further
    if (reading.findings.length > 0) {
      return { value: reading.value, findings: reading.findings.map(finding => ({ ...finding, goesOn: false })) }
    }
    const value = this.make(reading.value, contextOf(reading, false))
    return { value, findings: reading.findings }
  }

  override jsonOf(direction: Direction): JsonSchema {
    return direction === 'input' ? this.inner.toJson(direction) : {}
  }
}

/** Copies a default: it is one value for all readings, which must not change each other. */
function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return [...value]
  return Object.getPrototypeOf(value ?? 0) === Object.prototype ? { ...(value as object) } : value
}
