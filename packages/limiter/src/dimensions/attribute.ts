import type { Dimension } from './dimension.ts'
import { present } from './key.ts'

/** A value that the application gives with a call, or an entry of a descriptor that a proxy sends to the decision server. */
export const attribute: Dimension = {
  name: 'attribute',
  argument: 'required',
  read: (call, argument) => present(call.attributes?.[argument]),
  readerOf: argument => call => present(call.attributes?.[argument]),
}
