const UNRELEASED = '## Unreleased\n'

/** The changelog with what is under "Unreleased" under a version and a date, below an empty "Unreleased". */
export function releaseChangelog(text, version, date) {
  const start = text.indexOf(UNRELEASED)
  if (start < 0) throw new Error('CHANGELOG.md has no heading "## Unreleased"')
  const body = start + UNRELEASED.length
  const next = text.indexOf('\n## ', body)
  const changes = text.slice(body, next < 0 ? undefined : next)
  if (changes.trim() === '') throw new Error('CHANGELOG.md has nothing under "Unreleased": there is nothing to release')
  if (text.includes(`\n## ${version} `)) throw new Error(`CHANGELOG.md already has version ${version}`)
  return `${text.slice(0, body)}\n## ${version} (${date})\n${text.slice(body)}`
}
