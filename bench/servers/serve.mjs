// A server in a process of its own: node serve.mjs MODULE SUBJECT [OPTIONS]. It tells its port, then, whenever it is asked,
// the microseconds of CPU that it has used, and ends with whoever started it.
const [module, subject, options = '{}'] = process.argv.slice(2)
const { subjects } = await import(module)
const server = await subjects[subject](JSON.parse(options))
process.on('disconnect', () => process.exit())
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send(user + system)
})
server.listen(0, '127.0.0.1', () => process.send(server.address().port))
