import type { Call } from '../../call.ts'
import { isAsyncFunction, valueNow } from '../../common/promises.ts'
import { warnOfEach } from '../../common/warn-once.ts'
import { DianaError } from '../../errors.ts'
import type { Dimension } from '../dimension.ts'

/** A function that a program reads from a call, such as the account of a session. */
export type CallReader = (call: Call) => string | number | undefined

/** The limit of a caller, by the values of the dimensions that they are counted by. */
export type LimitReader = (caller: Readonly<Record<string, string>>) => unknown

const NAME = 'function'

/** True if a dimension of a rule is a function of the program's own. */
export function isFunctionName(word: string): boolean {
  return word.startsWith(`${NAME}:`)
}

/** Functions of the application: rules name each as the dimension `function:<name>`. */
export class GivenFunctions {
  readonly #functions = new Map<string, CallReader>()
  readonly #limits = new Map<string, LimitReader>()

  readonly dimension: Dimension = {
    name: NAME,
    argument: 'required',
    read: (call, argument) => {
      try {
        return textOf(valueNow(this.#functions.get(argument)?.(call), argument), argument)
      } catch {
        // the function failed on an unexpected call: its value counts as absent
        return undefined
      }
    },
  }

  /** Returns the name of a function that gives the limit of a caller; it may be async. */
  nameForLimit(name: string, read: LimitReader): string {
    this.#limits.set(`${NAME}:${name}`, read)
    return `${NAME}:${name}`
  }

  limitFunction(name: string): LimitReader | undefined {
    return this.#limits.get(name)
  }

  get isEmpty(): boolean {
    return this.#functions.size === 0
  }

  /** Returns the name of a function in rules. It is made from the rule's options, so that all processes of a fleet use the same. */
  nameFor(name: string, read: CallReader): string {
    if (isAsyncFunction(read)) {
      throw new DianaError('BAD_RULES', `${name} must not be async: return the value itself, and look it up before`)
    }
    this.#functions.set(name, read)
    return `${this.dimension.name}:${name}`
  }
}

/** Converts a value to text; an object would make one caller of all: `[object Object]`. */
function textOf(value: unknown, name: string): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'object' && typeof value !== 'function') return String(value)
  warnOfEach('DIANA_BAD_VALUE', name)
  return undefined
}
