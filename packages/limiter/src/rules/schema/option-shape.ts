import { z } from 'zod'
import { duration } from '../../common/duration-schema.ts'
import type { OptionShape, SchemaKit } from '../../common/option-shape.ts'

const kit: SchemaKit = { z, duration }
const created = new WeakMap<object, z.ZodRawShape>()

/** The schemas of an algorithm's or a source's own options; a function that creates them is called once. */
export function shapeOf(options: OptionShape): z.ZodRawShape {
  if (typeof options !== 'function') return options
  const shape = created.get(options) ?? options(kit)
  created.set(options, shape)
  return shape
}
