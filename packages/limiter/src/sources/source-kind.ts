import type { SchemaKit } from '../common/option-shape.ts'
import type * as z from '../shapes/index.ts'
import type { Source, SourceKind } from './source.ts'

/** Makes a kind whose `create` gets its own options, typed by its schema. */
export function sourceKind<Shape extends z.Shape>(kind: {
  readonly name: string
  options(kit: SchemaKit): Shape
  create(address: string, options: z.output<z.ObjectSchema<Shape>>): Source
}): SourceKind {
  return kind as unknown as SourceKind
}
