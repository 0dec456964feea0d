import type { OptionShape } from '../../common/option-shape.ts'
import { schemaKit } from '../../common/schema-kit.ts'
import type * as z from '../../shapes/index.ts'

const created = new WeakMap<object, z.Shape>()

/** Returns the schemas of an algorithm's or a source's own options; a function that creates them is called once. */
export function shapeOf(options: OptionShape): z.Shape {
  if (typeof options !== 'function') return options
  const shape = created.get(options) ?? options(schemaKit)
  created.set(options, shape)
  return shape
}
