import type { Call } from '../call.ts'
import type { Dimension } from './dimension.ts'

/** What a program makes of a call, such as the account of a session. */
export type CallReader = (call: Call) => string | number | undefined

const NAME = 'function'

/** Whether a dimension of a rule is a function of the program's own. */
export function isFunctionWord(word: string): boolean {
  return word.startsWith(`${NAME}:`)
}

/** Functions of the program's own: in rules each stands as the dimension `function:<name>`. */
export class GivenFunctions {
  readonly #functions = new Map<string, CallReader>()

  readonly dimension: Dimension = {
    name: NAME,
    argument: 'required',
    read: (call, argument) => {
      try {
        const value = this.#functions.get(argument)?.(call)
        return value === undefined || value === null ? undefined : String(value)
      } catch {
        // it has read a call that nobody foresaw: the caller is one of whom it says nothing
        return undefined
      }
    },
  }

  get isEmpty(): boolean {
    return this.#functions.size === 0
  }

  /** The word for a function. The name is of the program's words, so that all processes of a fleet use the same. */
  wordFor(name: string, read: CallReader): string {
    this.#functions.set(name, read)
    return `${this.dimension.name}:${name}`
  }
}
