import { ArraySchema, ObjectSchema, RecordSchema, type Shape, toSchema, UnionSchema } from './groups.ts'
import type { Primitive } from './issue.ts'
import type { AnySchema, CheckOptions, Direction, JsonSchema } from './schema.ts'
import {
  BooleanSchema,
  CustomSchema,
  EnumSchema,
  LiteralSchema,
  NumberSchema,
  StringSchema,
  UnknownSchema,
} from './values.ts'

export type { ArraySchema, InputOf, ObjectSchema, OutputOf, RecordSchema, Shape, UnionSchema } from './groups.ts'
export type { Fault, Issue } from './issue.ts'
export {
  type AnySchema,
  type CatchSchema,
  type CheckContext,
  type CheckOptions,
  type DefaultSchema,
  type Direction,
  type input,
  type JsonSchema,
  NEVER,
  type NullableSchema,
  type OptionalSchema,
  type output,
  type ParseResult,
  type PrefaultSchema,
  Schema,
  ShapeError,
} from './schema.ts'
export type { StandardSchema } from './standard-schema.ts'
export type { BooleanSchema, EnumSchema, LiteralSchema, NumberSchema, StringSchema, UnknownSchema } from './values.ts'

export function string(options?: CheckOptions): StringSchema {
  return new StringSchema(options)
}

export function number(options?: CheckOptions): NumberSchema {
  return new NumberSchema(options)
}

/** Makes the schema of a whole number that is exact. */
export function int(options?: CheckOptions): NumberSchema {
  return new NumberSchema(options).int(options)
}

/** Makes the schema of a number in a query, which is text. */
export function numberInText(options?: CheckOptions): NumberSchema {
  return new NumberSchema(options).coerced()
}

export function boolean(options?: CheckOptions): BooleanSchema {
  return new BooleanSchema(options)
}

export function unknown(): UnknownSchema {
  return new UnknownSchema()
}

function enumOf<const Value extends string>(values: readonly Value[], options?: CheckOptions): EnumSchema<Value> {
  return new EnumSchema(values, options)
}

export { enumOf as enum }

export function literal<const Value extends Primitive>(
  value: Value | readonly Value[],
  options?: CheckOptions,
): LiteralSchema<Value> {
  return new LiteralSchema<Value>([value].flat() as Value[], options)
}

export function custom<Output>(accepts: (value: unknown) => boolean, options?: CheckOptions): CustomSchema<Output> {
  return new CustomSchema<Output>(accepts, options)
}

/** Makes the schema of an object; fields that it does not name are left out. */
export function object<Of extends Shape>(shape: Of, options?: CheckOptions): ObjectSchema<Of> {
  return new ObjectSchema(shape, 'drop', options)
}

/** Makes the schema of an object that may have no other fields. */
export function strictObject<Of extends Shape>(shape: Of, options?: CheckOptions): ObjectSchema<Of> {
  return new ObjectSchema(shape, 'refuse', options)
}

/** Makes the schema of an object that keeps other fields as they are. */
export function looseObject<Of extends Shape>(shape: Of, options?: CheckOptions): ObjectSchema<Of> {
  return new ObjectSchema(shape, 'keep', options)
}

export function array<Item extends AnySchema>(item: Item, options?: CheckOptions): ArraySchema<Item> {
  return new ArraySchema(item, options)
}

export function record<Key extends AnySchema, Value extends AnySchema>(
  key: Key,
  value: Value,
): RecordSchema<Key, Value> {
  return new RecordSchema(key, value)
}

export function union<const Of extends readonly AnySchema[]>(options: Of, more?: CheckOptions): UnionSchema<Of> {
  return new UnionSchema(options, more)
}

/** Returns the JSON Schema (2020-12) of the written value, or of the value that is read from it. */
export function toJSONSchema(schema: AnySchema, { io }: { readonly io: Direction }): JsonSchema {
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...toSchema(schema).toJson(io) }
}

export { toSchema } from './groups.ts'
export type { CustomSchema } from './values.ts'
