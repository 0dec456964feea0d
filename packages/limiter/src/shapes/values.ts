import type { ErrorMap, Finding, Primitive } from './issue.ts'
import { type CheckOptions, checkOptions, type Direction, type JsonSchema, type Reading, Schema } from './schema.ts'

/** A value of one kind, checked by `typeof` or the like. */
abstract class KindSchema<Output> extends Schema<Output, Output> {
  override readonly error: ErrorMap | undefined
  protected abstract readonly kind: string

  constructor(options?: CheckOptions) {
    super()
    this.error = checkOptions(options).error
  }

  protected abstract fits(input: unknown): boolean

  protected read(input: unknown): Reading {
    if (this.fits(input)) return { value: input, findings: [] }
    return {
      value: input,
      findings: [{ code: 'invalid_type', expected: this.kind, path: [], input, error: this.error, goesOn: false }],
    }
  }

  jsonOf(_direction: Direction): JsonSchema {
    return { type: this.kind, ...this.bounds }
  }
}

/** Makes the finding of a check that compares. */
function outside(
  part:
    | { code: 'too_small'; origin: string; minimum: number; isExcluded?: boolean }
    | { code: 'too_big'; origin: string; maximum: number },
  input: unknown,
  { error, abort }: ReturnType<typeof checkOptions>,
): Finding {
  return { ...part, path: [], input, error, goesOn: !abort }
}

export class StringSchema extends KindSchema<string> {
  protected readonly kind = 'string'

  protected fits(input: unknown): boolean {
    return typeof input === 'string'
  }

  min(minimum: number, options?: CheckOptions): this {
    const own = checkOptions(options)
    return this.checked(
      ({ value, findings }) => {
        if (typeof value !== 'string' || value.length >= minimum) return
        findings.push(outside({ code: 'too_small', origin: 'string', minimum }, value, own))
      },
      { minLength: minimum },
    )
  }

  max(maximum: number, options?: CheckOptions): this {
    const own = checkOptions(options)
    return this.checked(
      ({ value, findings }) => {
        if (typeof value !== 'string' || value.length <= maximum) return
        findings.push(outside({ code: 'too_big', origin: 'string', maximum }, value, own))
      },
      { maxLength: maximum },
    )
  }

  regex(pattern: RegExp, options?: CheckOptions): this {
    const { error, abort } = checkOptions(options)
    return this.checked(
      ({ value, findings }, isAborted) => {
        pattern.lastIndex = 0
        if (isAborted || pattern.test(value as string)) return
        findings.push({
          code: 'invalid_format',
          pattern: String(pattern),
          path: [],
          input: value,
          error,
          goesOn: !abort,
        })
      },
      this.bounds.pattern === undefined
        ? { pattern: pattern.source }
        : { allOf: [...((this.bounds.allOf as object[] | undefined) ?? []), { pattern: pattern.source }] },
    )
  }
}

export class NumberSchema extends KindSchema<number> {
  protected readonly kind: string = 'number'
  readonly isCoerced: boolean = false

  protected fits(input: unknown): boolean {
    return typeof input === 'number' && Number.isFinite(input)
  }

  protected override read(input: unknown): Reading {
    return super.read(this.isCoerced ? Number(input) : input)
  }

  /** Allows that the number is written as text, as in a query. */
  coerced(): this {
    return this.with({ isCoerced: true })
  }

  int(options?: CheckOptions): this {
    const own = checkOptions(options)
    const least = Number.MIN_SAFE_INTEGER
    const most = Number.MAX_SAFE_INTEGER
    return this.checked(
      ({ value: input, findings }, isAborted) => {
        if (isAborted || Number.isSafeInteger(input)) return
        if (!Number.isInteger(input)) {
          const { error } = own
          findings.push({ code: 'invalid_type', expected: 'int', path: [], input, error, goesOn: false })
        } else if ((input as number) > 0) {
          findings.push(outside({ code: 'too_big', origin: 'int', maximum: most }, input, own))
        } else findings.push(outside({ code: 'too_small', origin: 'int', minimum: least }, input, own))
      },
      { type: 'integer', minimum: least, maximum: most },
    )
  }

  min(minimum: number, options?: CheckOptions): this {
    const own = checkOptions(options)
    return this.checked(
      ({ value, findings }, isAborted) => {
        if (isAborted || (value as number) >= minimum) return
        findings.push(outside({ code: 'too_small', origin: 'number', minimum }, value, own))
      },
      { minimum },
    )
  }

  gt(minimum: number, options?: CheckOptions): this {
    const own = checkOptions(options)
    return this.checked(
      ({ value, findings }, isAborted) => {
        if (isAborted || (value as number) > minimum) return
        findings.push(outside({ code: 'too_small', origin: 'number', minimum, isExcluded: true }, value, own))
      },
      { exclusiveMinimum: minimum },
    )
  }

  max(maximum: number, options?: CheckOptions): this {
    const own = checkOptions(options)
    return this.checked(
      ({ value, findings }, isAborted) => {
        if (isAborted || (value as number) <= maximum) return
        findings.push(outside({ code: 'too_big', origin: 'number', maximum }, value, own))
      },
      { maximum },
    )
  }
}

export class BooleanSchema extends KindSchema<boolean> {
  protected readonly kind = 'boolean'

  protected fits(input: unknown): boolean {
    return typeof input === 'boolean'
  }
}

export class UnknownSchema extends KindSchema<unknown> {
  protected readonly kind = 'unknown'

  protected fits(): boolean {
    return true
  }

  override jsonOf(): JsonSchema {
    return {}
  }
}

/** One of some values. */
export class EnumSchema<Value extends Primitive> extends Schema<Value, Value> {
  readonly options: readonly Value[]
  override readonly error: ErrorMap | undefined

  constructor(options: readonly Value[], more?: CheckOptions) {
    super()
    this.options = options
    this.error = checkOptions(more).error
  }

  protected read(input: unknown): Reading {
    if (this.options.includes(input as Value)) return { value: input, findings: [] }
    const { options: values, error } = this
    return { value: input, findings: [{ code: 'invalid_value', values, path: [], input, error, goesOn: false }] }
  }

  jsonOf(_direction: Direction): JsonSchema {
    const [kind, ...others] = [...new Set(this.options.map(value => (value === null ? 'null' : typeof value)))]
    return { ...(others.length === 0 ? { type: kind } : {}), enum: [...this.options] }
  }
}

/** One value, or one of some. */
export class LiteralSchema<Value extends Primitive> extends EnumSchema<Value> {
  override jsonOf(direction: Direction): JsonSchema {
    const { enum: values, ...rest } = super.jsonOf(direction)
    const [value, ...others] = this.options
    return others.length === 0 ? { ...rest, const: value } : { ...rest, enum: values }
  }
}

/** A value that a function accepts. */
export class CustomSchema<Output> extends Schema<Output, unknown> {
  readonly accepts: (value: unknown) => boolean
  override readonly error: ErrorMap | undefined

  constructor(accepts: (value: unknown) => boolean, options?: CheckOptions) {
    super()
    this.accepts = accepts
    this.error = checkOptions(options).error
  }

  protected read(input: unknown): Reading {
    if (this.accepts(input)) return { value: input, findings: [] }
    return { value: input, findings: [{ code: 'custom', path: [], input, error: this.error, goesOn: true }] }
  }

  jsonOf(_direction: Direction): JsonSchema {
    return {}
  }
}
