/** The levels with a name; calls of a higher number are refused later. */
export const namedLevels: Readonly<Record<string, number>> = { sheddable: 10, default: 50, critical: 90 }

export const HIGHEST_LEVEL = 100

/** Returns the level that a text or a number stands for; undefined if it is none. */
export function levelNamed(value: unknown): number | undefined {
  const level = typeof value === 'string' && Object.hasOwn(namedLevels, value) ? namedLevels[value] : Number(value)
  const isText = typeof value === 'string' && /^(\w{3,9}|\d{1,3})$/.test(value)
  if (!isText && typeof value !== 'number') return undefined
  return Number.isInteger(level) && level! >= 0 && level! <= HIGHEST_LEVEL ? level : undefined
}

/** Returns the name of a level, or its number. */
export function levelName(level: number): string {
  return Object.keys(namedLevels).find(name => namedLevels[name] === level) ?? `${level}`
}
