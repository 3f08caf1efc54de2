document.getElementById("origin").textContent = new URL(".", location.href).href;
