export interface NamedCommand {
  readonly about: string
  readonly takes: string
  readonly run: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly needs?: string
}

export const commands: Readonly<Record<'long' | 'write', Readonly<Record<string, NamedCommand>>>>
export function listOf(kind: 'long' | 'write'): string
export function unknownName(kind: 'long' | 'write', name: string): string
