// The script of both pages: a report has its data in it, the live view asks a server for them.
import { mountLive } from "./live.js";
import { mountReport } from "./report.js";

const main = document.getElementById("page");
if (main) (document.getElementById("view") ? mountLive : mountReport)(main);
