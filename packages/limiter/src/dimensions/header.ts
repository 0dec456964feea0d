import type { Dimension } from './dimension.ts'

/** A header; sent several times, all its values together are one value, since servers differ in which one they take. */
export const header: Dimension = {
  name: 'header',
  argument: 'required',
  read: (call, argument) => {
    const value = call.headers?.[argument.toLowerCase()]
    if (typeof value === 'string') return value
    return Array.isArray(value) ? value.join(', ') : undefined
  },
}
