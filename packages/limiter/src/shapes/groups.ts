import type { ErrorMap, Finding } from './issue.ts'
import { toIssues } from './issue.ts'
import {
  type AnySchema,
  aborts,
  type CheckOptions,
  checkOptions,
  type Direction,
  type input,
  type JsonSchema,
  type output,
  type Reading,
  Schema,
  vendor,
  within,
} from './schema.ts'

/** The schemas of the fields of an object; those of any library that follows Standard Schema. */
export type Shape = Readonly<Record<string, AnySchema>>

type OptionalIn<Of extends Shape> = {
  [Key in keyof Of]: Of[Key] extends { readonly isOptionalIn: true } ? Key : never
}[keyof Of]
type OptionalOut<Of extends Shape> = {
  [Key in keyof Of]: Of[Key] extends { readonly isOptionalOut: true } ? Key : never
}[keyof Of]
type Plain<Of> = { [Key in keyof Of]: Of[Key] } & {}

export type OutputOf<Of extends Shape> = Plain<
  { -readonly [Key in Exclude<keyof Of, OptionalOut<Of>>]: output<Of[Key]> } & {
    -readonly [Key in OptionalOut<Of>]?: output<Of[Key]>
  }
>
export type InputOf<Of extends Shape> = Plain<
  { -readonly [Key in Exclude<keyof Of, OptionalIn<Of>>]: input<Of[Key]> } & {
    -readonly [Key in OptionalIn<Of>]?: input<Of[Key]>
  }
>

/** The treatment of fields that the shape of an object does not have. */
export type OtherFields = 'drop' | 'keep' | 'refuse'

export class ObjectSchema<Of extends Shape = Shape> extends Schema<OutputOf<Of>, InputOf<Of>> {
  readonly shape: Of
  readonly others: OtherFields
  override readonly error: ErrorMap | undefined
  #fields: Readonly<Record<string, Schema>> | undefined

  constructor(shape: Of, others: OtherFields, options?: CheckOptions) {
    super()
    this.shape = shape
    this.others = others
    this.error = checkOptions(options).error
  }

  /** The schemas of the fields, looked up when they are first needed, so that a shape may contain itself. */
  get fields(): Readonly<Record<string, Schema>> {
    this.#fields ??= Object.fromEntries(Object.entries(this.shape).map(([name, schema]) => [name, toSchema(schema)]))
    return this.#fields
  }

  protected override with(parts: object): this {
    const copy = new ObjectSchema(this.shape, this.others)
    return Object.assign(copy, { ...this }, parts) as unknown as this
  }

  protected read(input: unknown): Reading {
    if (!isMap(input)) return wrongGroup('object', input, this.error)
    const { fields, others } = this
    const value: Record<string, unknown> = {}
    const findings: Finding[] = []
    for (const [name, field] of Object.entries(fields)) {
      const isPresent = name in input
      const one = field.run(input[name])
      if (one.findings.length > 0) {
        if (isPresent || !field.isOptionalOut) findings.push(...within(name, one.findings))
      } else if (!isPresent && !field.isOptionalIn) {
        const missing = wrongGroup('a value', undefined, undefined)
        findings.push(...within(name, missing.findings))
      }
      if (one.value !== undefined || isPresent) define(value, name, one.value)
    }
    const unknown = others === 'drop' ? [] : Object.keys(input).filter(name => !Object.hasOwn(fields, name))
    if (others === 'keep') for (const name of unknown) if (name !== '__proto__') value[name] = input[name]
    if (others === 'refuse' && unknown.length > 0) {
      const known = Object.keys(fields)
      findings.push({
        code: 'unrecognized_keys',
        keys: unknown,
        known,
        path: [],
        input,
        error: this.error,
        goesOn: true,
      })
    }
    return { value, findings }
  }

  override get transforms(): boolean {
    return Object.values(this.fields).some(({ transforms }) => transforms)
  }

  /** Returns this object with more fields. */
  extend<More extends Shape>(more: More): ObjectSchema<Omit<Of, keyof More> & More> {
    return new ObjectSchema({ ...this.shape, ...more } as Omit<Of, keyof More> & More, this.others)
  }

  /** Returns this object, which then keeps other fields as they are. */
  loose(): ObjectSchema<Of> {
    return new ObjectSchema(this.shape, 'keep')
  }

  /** Returns this object with all fields optional. */
  partial(): ObjectSchema<{ [Key in keyof Of]: Schema<output<Of[Key]> | undefined, input<Of[Key]> | undefined> }> {
    const shape = Object.entries(this.fields).map(([name, field]) => [name, field.optional()])
    return new ObjectSchema(Object.fromEntries(shape), this.others) as never
  }

  jsonOf(direction: Direction): JsonSchema {
    const fields = Object.entries(this.fields)
    const properties = Object.fromEntries(fields.map(([name, field]) => [name, field.toJson(direction)]))
    const required = fields
      .filter(([, field]) => !(direction === 'input' ? field.mayBeLeftOut : field.isOptionalOut))
      .map(([name]) => name)
    const isClosed = this.others === 'refuse' || (this.others === 'drop' && direction === 'output')
    return {
      type: 'object',
      properties,
      ...(required.length > 0 ? { required } : {}),
      ...(isClosed ? { additionalProperties: false } : this.others === 'keep' ? { additionalProperties: {} } : {}),
    }
  }
}

export class ArraySchema<Item extends AnySchema> extends Schema<output<Item>[], input<Item>[]> {
  readonly item: Schema
  readonly most: number = Number.POSITIVE_INFINITY
  override readonly error: ErrorMap | undefined

  constructor(item: Item, options?: CheckOptions) {
    super()
    this.item = toSchema(item)
    this.error = checkOptions(options).error
  }

  protected read(input: unknown): Reading {
    if (!Array.isArray(input)) return wrongGroup('array', input, this.error)
    // the items of a list that is too long are not read
    if (input.length > this.most) return { value: input, findings: [] }
    const findings: Finding[] = []
    const value = Array.from(input, (item, index) => {
      const one = this.item.run(item)
      if (one.findings.length > 0) findings.push(...within(index, one.findings))
      return one.value
    })
    return { value, findings }
  }

  min(minimum: number, options?: CheckOptions): this {
    const { error, abort } = checkOptions(options)
    return this.checked(
      ({ value: input, findings }) => {
        if (!Array.isArray(input) || input.length >= minimum) return
        findings.push({ code: 'too_small', origin: 'array', minimum, path: [], input, error, goesOn: !abort })
      },
      { minItems: minimum },
    )
  }

  max(maximum: number, options?: CheckOptions): this {
    const { error } = checkOptions(options)
    const checked = this.checked(
      ({ value: input, findings }) => {
        if (!Array.isArray(input) || input.length <= maximum) return
        findings.push({ code: 'too_big', origin: 'array', maximum, path: [], input, error, goesOn: false })
      },
      { maxItems: maximum },
    )
    return checked.with({ most: Math.min(this.most, maximum) })
  }

  override get transforms(): boolean {
    return this.item.transforms
  }

  length(count: number, options?: CheckOptions): this {
    return this.min(count, options).max(count, options)
  }

  jsonOf(direction: Direction): JsonSchema {
    return { ...this.bounds, type: 'array', items: this.item.toJson(direction) }
  }
}

export class RecordSchema<Key extends AnySchema, Value extends AnySchema> extends Schema<
  Record<output<Key> & string, output<Value>>,
  Record<input<Key> & string, input<Value>>
> {
  readonly key: Schema
  readonly item: Schema

  constructor(key: Key, item: Value) {
    super()
    this.key = toSchema(key)
    this.item = toSchema(item)
  }

  protected read(input: unknown): Reading {
    if (!isPlainMap(input)) return wrongGroup('record', input, undefined)
    const value: Record<string, unknown> = {}
    const findings: Finding[] = []
    for (const name of Object.keys(input)) {
      if (name === '__proto__') continue
      const key = this.key.run(name)
      if (key.findings.length > 0) {
        const issues = toIssues(key.findings)
        findings.push({ code: 'invalid_key', issues, path: [name], input: name, goesOn: false })
        continue
      }
      const one = this.item.run(input[name])
      if (one.findings.length > 0) findings.push(...within(name, one.findings))
      define(value, String(key.value), one.value)
    }
    return { value, findings }
  }

  override get transforms(): boolean {
    return this.key.transforms || this.item.transforms
  }

  jsonOf(direction: Direction): JsonSchema {
    return {
      type: 'object',
      propertyNames: this.key.toJson(direction),
      additionalProperties: this.item.toJson(direction),
    }
  }
}

/** A value that fits one of some schemas; the first that it fits reads it. */
export class UnionSchema<Of extends readonly AnySchema[]> extends Schema<output<Of[number]>, input<Of[number]>> {
  override readonly isOptionalIn: boolean
  readonly options: readonly Schema[]
  override readonly error: ErrorMap | undefined

  constructor(options: Of, more?: CheckOptions) {
    super()
    this.options = options.map(toSchema)
    this.error = checkOptions(more).error
    this.isOptionalIn = this.options.some(({ isOptionalIn }) => isOptionalIn)
  }

  protected read(input: unknown): Reading {
    const readings: Reading[] = []
    for (const option of this.options) {
      const reading = option.run(input)
      if (reading.findings.length === 0) return reading
      readings.push(reading)
    }
    const [near, ...others] = readings.filter(reading => !aborts(reading))
    if (near && others.length === 0) return near
    if (readings.length === 1) return readings[0]!
    const errors = readings.map(({ findings }) => toIssues(findings))
    return {
      value: input,
      findings: [{ code: 'invalid_union', errors, path: [], input, error: this.error, goesOn: false }],
    }
  }

  override get transforms(): boolean {
    return this.options.some(({ transforms }) => transforms)
  }

  jsonOf(direction: Direction): JsonSchema {
    return { anyOf: this.options.map(option => option.toJson(direction)) }
  }
}

/** A schema of another library. */
class ForeignSchema extends Schema {
  override readonly isOptionalIn: boolean
  readonly foreign: AnySchema

  constructor(foreign: AnySchema) {
    super()
    this.foreign = foreign
    this.isOptionalIn = this.run(undefined).findings.length === 0
  }

  protected read(input: unknown): Reading {
    const result = this.foreign['~standard'].validate(input)
    if (result instanceof Promise) throw new TypeError('a schema must check values at once, without a promise')
    if (result.issues === undefined) return { value: result.value, findings: [] }
    const findings = result.issues.map(({ message, path = [] }): Finding => {
      const steps = path.map(step => (typeof step === 'object' ? step.key : step))
      return { code: 'custom', message, path: steps, input, goesOn: false }
    })
    return { value: input, findings }
  }

  jsonOf(direction: Direction): JsonSchema {
    const { $schema: _, ...schema } =
      this.foreign['~standard'].jsonSchema?.[direction]({ target: 'draft-2020-12' }) ?? ({} as JsonSchema)
    return schema
  }
}

const foreignSchemas = new WeakMap<AnySchema, Schema>()

/** Returns a schema of any library as one of this library. */
export function toSchema(schema: AnySchema): Schema {
  // of this library, also of another copy of it
  if (schema['~standard']?.vendor === vendor) return schema as Schema
  const known = foreignSchemas.get(schema) ?? new ForeignSchema(schema)
  foreignSchemas.set(schema, known)
  return known
}

function wrongGroup(expected: string, input: unknown, error: ErrorMap | undefined): Reading {
  return { value: input, findings: [{ code: 'invalid_type', expected, path: [], input, error, goesOn: false }] }
}

/** True if a value is a map of names, not an object of a class. */
function isPlainMap(value: unknown): value is Readonly<Record<string, unknown>> {
  if (!isMap(value)) return false
  const made = value.constructor
  return typeof made !== 'function' || Object.hasOwn(made.prototype ?? {}, 'isPrototypeOf')
}

/** Sets a field by any name, also by one that objects inherit. */
function define(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
