import { shapeOf } from '../../../packages/limiter/src/rules/schema/option-shape.ts'
import * as z from '../../../packages/limiter/src/shapes/index.ts'
import type { Source, SourceKind } from '../../../packages/limiter/src/sources/source.ts'

/** Makes a source from the options of a rule file, as the parser does. */
export function createSource(
  kind: SourceKind,
  address: string,
  options: Readonly<Record<string, unknown>> = {},
): Source {
  return kind.create(address, z.strictObject(shapeOf(kind.options)).parse(options))
}
