import type { Call } from '../call.ts'

/** One way to tell callers apart. Rules name it `name`, or `name:argument` where it needs one. */
export interface Dimension {
  readonly name: string
  readonly argument: 'none' | 'required'
  /** What the call says; undefined, an empty or a blank text count as absent. It must not throw. */
  read(call: Call, argument: string): string | undefined
}
