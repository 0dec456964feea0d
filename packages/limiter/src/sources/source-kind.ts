import type { z } from 'zod'
import type { SchemaKit } from '../common/option-shape.ts'
import type { Source, SourceKind } from './source.ts'

/** Makes a kind whose `create` gets its own options, typed by its schema. */
export function sourceKind<Shape extends z.ZodRawShape>(kind: {
  readonly name: string
  options(kit: SchemaKit): Shape
  create(address: string, options: z.output<z.ZodObject<Shape>>): Source
}): SourceKind {
  return kind as unknown as SourceKind
}
