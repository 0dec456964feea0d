/** A package.json in the new version, which also depends on the other published packages in that version. */
export function setVersion(manifest, version, names) {
  const dependencies = Object.entries(manifest.dependencies ?? {}).map(([name, range]) => [
    name,
    names.includes(name) ? version : range,
  ])
  return { ...manifest, version, ...(manifest.dependencies ? { dependencies: Object.fromEntries(dependencies) } : {}) }
}

/** The lock file of the workspaces with the packages in these folders in the new version. */
export function setLockVersion(lock, version, folders, names) {
  const packages = { ...lock.packages }
  for (const folder of folders) packages[folder] = setVersion(packages[folder], version, names)
  return { ...lock, packages }
}
