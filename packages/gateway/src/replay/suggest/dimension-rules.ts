/** Writes a rule file that only counts: one rule per dimension and period, such as `ip/m`; limits so high that nothing is refused. */
export function rulesForDimensions(words: readonly string[]): string {
  const rules = words.map(word => {
    const slash = word.lastIndexOf('/')
    const [by, period] = slash < 0 ? [word, 'm'] : [word.slice(0, slash), word.slice(slash + 1)]
    const id = `per-${by.replaceAll(/[^\w-]+/g, '-')}`
    return {
      id,
      ...(by === 'all' ? { id: 'all-calls' } : { by: by.split('+') }),
      limit: `10000000/${period}`,
      whenFull: 'shadow',
    }
  })
  return JSON.stringify({ rules })
}
