import type { Mistake } from '../mistake.ts'
import { escapeText } from '../show.ts'
import { composeYaml } from './compose-yaml.ts'
import { readNodes } from './read-nodes.ts'

const LARGEST_BYTES = 4 * 1024 * 1024

/** The plain values of a YAML text, and where each of them stands. */
export interface PlacedValues {
  readonly value: unknown
  /** The places that are not YAML, or exceed the bounds. */
  readonly mistakes: readonly Mistake[]
  /** Returns the line and column of the value at a path, or of the nearest value around it; `atName` points at its word. */
  placeOf(path: readonly PropertyKey[], atName?: boolean): { readonly line: number; readonly column: number }
}

/** Reads a YAML text, within the bounds of a rule file. It never throws. */
export function readValues(text: string, file: string): PlacedValues {
  if (Buffer.byteLength(text) > LARGEST_BYTES) {
    const mistakes = [{ file, line: 1, column: 1, message: 'the document is larger than 4 MiB: split it' }]
    return { value: undefined, mistakes, placeOf: () => ({ line: 1, column: 1 }) }
  }
  const { lines, document, fault } = composeYaml(text.replace(/^\uFEFF/, ''))
  const placeAt = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  const mistakeAt = (offset: number, message: string): Mistake => ({
    file,
    ...placeAt(offset),
    message: escapeText(message),
  })
  if (fault || !document) {
    const { offset = 0, message = 'the document is empty' } = fault ?? {}
    return { value: undefined, mistakes: [mistakeAt(offset, message)], placeOf: () => placeAt(offset) }
  }
  const nodes = readNodes(document)
  return {
    value: nodes.value,
    mistakes: nodes.faults.map(({ offset, message }) => mistakeAt(offset, message)),
    placeOf: (path, atName = false) => placeAt(nodes.offsetOf(path, atName)),
  }
}
