const VERSION = /^(\d+)\.(\d+)\.(\d+)$/

/** The version after `current`: `major`, `minor` or `patch` counts on, and a later version may be given as it is. */
export function nextVersion(current, step) {
  const [major, minor, patch] = numbersOf(current)
  if (step === 'major') return `${major + 1}.0.0`
  if (step === 'minor') return `${major}.${minor + 1}.0`
  if (step === 'patch') return `${major}.${minor}.${patch + 1}`
  if (!VERSION.test(step))
    throw new Error(`"${step}" is no version: use major, minor, patch, or a version such as 1.2.3`)
  if (!isLater(numbersOf(step), [major, minor, patch])) throw new Error(`${step} is not later than ${current}`)
  return step
}

function numbersOf(version) {
  return VERSION.exec(version).slice(1).map(Number)
}

function isLater(one, other) {
  const at = one.findIndex((number, index) => number !== other[index])
  return at >= 0 && one[at] > other[at]
}
