export interface Checked {
  readonly name: string
  readonly flags: Readonly<Record<string, number>>
  readonly isShort?: boolean
}

export const scenes: readonly (Checked & { readonly sizes: readonly number[] })[]
export const mutants: readonly Checked[]
export function flagsOf(checked: Checked, processes: number): Readonly<Record<string, number>>
